// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/doctest_beside_torch.hpp"

#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>
#include <adasum/torch_tensor.hpp>

namespace test_of_torch_tensor {

TEST_CASE("the elements of a contiguous tensor are its memory") {
  auto tensor = at::arange(6, at::kFloat).reshape({2, 3});
  auto elements = adasum::elements<float>(tensor);
  CHECK(elements.size() == 6);
  CHECK(elements.data() == tensor.data_ptr<float>());
  CHECK(adasum::elements<float>(at::empty({0}, at::kFloat)).empty());
  const auto images = at::zeros({2, 3, 4, 5}, at::kFloat).contiguous(at::MemoryFormat::ChannelsLast);
  CHECK(adasum::elements<float>(images.permute({0, 2, 3, 1})).data() == images.data_ptr<float>());
  CHECK(adasum::elements<float>(at::zeros({3}, at::kFloat).set_requires_grad(true)).size() == 3);
  const auto complex = at::zeros({2, 3}, at::kComplexFloat);
  CHECK(adasum::elements<float>(at::view_as_real(complex)).data() == static_cast<float*>(complex.data_ptr()));
}

TEST_CASE("a tensor whose memory is not what it shows is refused, and named") {
  const auto refused = [](const at::Tensor& tensor, const char* why) {
    const auto message = doctest::Contains(why);
    CHECK_THROWS_WITH_AS(adasum::elements<float>(tensor), message, adasum::bad_input);
    CHECK_THROWS_WITH_AS(adasum::visit_elements(tensor, [](auto) {}), message, adasum::bad_input);
  };
  refused(at::zeros({2, 3}, at::kFloat).t(), "in another order than that of its indices");
  refused(at::zeros({2, 3, 4, 5}, at::kFloat).contiguous(at::MemoryFormat::ChannelsLast), "tensor.permute");
  refused(at::_neg_view(at::ones({4}, at::kFloat)), "give it tensor.resolve_neg()");
  refused(at::imag(at::ones({1}, at::kComplexFloat).conj()), "give it tensor.resolve_neg()");
  refused(at::ones({4}, at::kComplexFloat).conj(), "give it tensor.resolve_conj()");
  refused(at::ones({4}, at::kComplexFloat), "at::view_as_real(tensor)");
  refused(at::_efficientzerotensor({4}, at::kFloat), "ZeroTensor");
  refused(at::zeros({4}, at::TensorOptions(at::kFloat).device(at::kMeta)), "on the device meta");
  refused(at::ones({2, 2}, at::kFloat).to_sparse_csr(), "SparseCsr");
  refused(at::quantize_per_tensor(at::ones({4}, at::kFloat), 0.1, 0, at::kQInt8), "Quantized");
  auto freed = at::ones({4}, at::kFloat);
  freed.storage().unsafeGetStorageImpl()->set_nbytes(8);
  refused(freed, "shorter than the tensor, or has been freed");
}

TEST_CASE("what cannot be a gradient is refused, and named") {
  const auto gaps = doctest::Contains("gaps between its elements");
  CHECK_THROWS_WITH_AS(adasum::elements<float>(at::zeros({4, 4}, at::kFloat).select(1, 0)), gaps, adasum::bad_input);
  CHECK_THROWS_WITH_AS(adasum::elements<float>(at::zeros({1}, at::kFloat).expand({3})), gaps, adasum::bad_input);
  CHECK_THROWS_WITH_AS(adasum::elements<float>(at::zeros({4}, at::kDouble)),
                       doctest::Contains("holds Double, not Float"), adasum::bad_input);
  CHECK_THROWS_WITH_AS(adasum::elements<float>(at::Tensor()), doctest::Contains("the tensor is undefined"),
                       adasum::bad_input);
  CHECK_THROWS_WITH_AS(adasum::elements<float>(at::zeros({4}, at::kFloat).to_sparse()), doctest::Contains("not dense"),
                       adasum::bad_input);
  CHECK_THROWS_WITH_AS(adasum::visit_elements(at::zeros({4}, at::kInt), [](auto) {}),
                       doctest::Contains("the tensor holds Int; gradients are Double, Float, Half or BFloat16"),
                       adasum::bad_input);
}

TEST_CASE("visited as what they are") {
  const auto bytes_of_element = [](at::ScalarType type) {
    return adasum::visit_elements(at::zeros({3}, type), [](auto elements) {
      CHECK(elements.size() == 3);
      return sizeof(elements[0]);
    });
  };
  CHECK(bytes_of_element(at::kDouble) == 8);
  CHECK(bytes_of_element(at::kFloat) == 4);
  CHECK(bytes_of_element(at::kHalf) == 2);
  CHECK(bytes_of_element(at::kBFloat16) == 2);
}

TEST_CASE("a pair of tensors") {
  auto a = at::zeros({2}, at::kBFloat16), b = at::zeros({2}, at::kBFloat16);
  a[0] = 1;
  b[1] = 2;
  adasum::adasum_pair(adasum::serial_space{}, adasum::elements<c10::BFloat16>(a), adasum::elements<c10::BFloat16>(b),
                      adasum::elements<c10::BFloat16>(a));
  CHECK(a[0].item<float>() == 1);  // orthogonal: added
  CHECK(a[1].item<float>() == 2);
}

}  // namespace test_of_torch_tensor
