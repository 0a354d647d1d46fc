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

TEST_CASE("the elements of a tensor are its memory, in the order in which they lie there") {
  auto tensor = at::arange(6, at::kFloat).reshape({2, 3});
  auto elements = adasum::elements<float>(tensor);
  CHECK(elements.size() == 6);
  CHECK(elements.data() == tensor.data_ptr<float>());
  // Transposed, it has no gaps either.
  CHECK(adasum::elements<float>(tensor.t()).data() == elements.data());
  CHECK(adasum::elements<float>(at::empty({0}, at::kFloat)).empty());
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
