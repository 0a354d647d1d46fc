// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/exec/serial.hpp>
#include <adasum/mdspan.hpp>
#include <adasum/pair.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <vector>
#include <version>

// Whichever of them there are. Eigen's arrays are in gradient.cpp.
#if __has_include(<xtensor/xview.hpp>) && !defined(__clang__)  // 19 does not compile xtensor 0.24
#define ADASUM_TEST_XTENSOR
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xfixed.hpp>
#include <xtensor/xstrided_view.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
#endif
#if __has_include(<mdspan/mdspan.hpp>)
#include <mdspan/mdspan.hpp>
#endif
#ifdef __cpp_lib_mdspan  // from C++23 on
#include <mdspan>
#endif

/// Arrays of other libraries as gradients.
namespace test_of_arrays_of_libraries {

using adasum::gradient;
using adasum::mutable_gradient;

namespace {

template <class A>
std::vector<double> elements_of(A&& array) {
  const auto elements = adasum::detail::const_span_of(array);
  return {elements.begin(), elements.end()};
}

using numbers = std::vector<double>;

}  // namespace

TEST_CASE("a range is read from where it begins, whatever its data() is") {
  struct row {
    float* whole;
    float* begin() const { return whole + 2; }
    float* end() const { return whole + 4; }
    float* data() const { return whole; }
    std::size_t size() const { return 2; }
  };
  float memory[]{0, 1, 2, 3};
  CHECK(elements_of(row{memory}) == numbers{2, 3});
}

#ifdef ADASUM_TEST_XTENSOR

TEST_CASE("xtensor's containers and adaptors in row-major order") {
  xt::xtensor<float, 2> tensor{{0, 1, 2}, {3, 4, 5}};
  const xt::xarray<double> array{{0, 1}, {2, 3}};
  xt::xtensor_fixed<float, xt::xshape<2, 2>> fixed{{0, 1}, {2, 3}};
  std::vector<float> memory{0, 1, 2, 3};
  auto adapted = xt::adapt(memory.data(), memory.size(), xt::no_ownership(), std::array<std::size_t, 2>{2, 2});
  CHECK(elements_of(tensor) == numbers{0, 1, 2, 3, 4, 5});
  CHECK(elements_of(array) == numbers{0, 1, 2, 3});
  CHECK(elements_of(fixed) == numbers{0, 1, 2, 3});
  CHECK(elements_of(adapted) == numbers{0, 1, 2, 3});
  static_assert(mutable_gradient<decltype((tensor))> && !mutable_gradient<decltype((array))>);
  using columns = xt::xtensor<float, 2, xt::layout_type::column_major>;
  static_assert(!gradient<columns> && !gradient<decltype(tensor + tensor)>);
}

TEST_CASE("a view of xtensor's is what it shows, not what its array begins with") {
  xt::xtensor<float, 2> tensor{{0, 1, 2}, {3, 4, 5}};
  xt::xarray<float> array = tensor;
  CHECK(elements_of(xt::view(tensor, 1)) == numbers{3, 4, 5});
  CHECK(elements_of(xt::row(tensor, 1)) == numbers{3, 4, 5});
  CHECK(elements_of(xt::view(tensor, xt::range(1, 2), xt::all())) == numbers{3, 4, 5});
  CHECK(elements_of(xt::view(array, 1, xt::all())) == numbers{3, 4, 5});
  static_assert(!gradient<decltype(xt::view(tensor, xt::all(), 1))> && !gradient<decltype(xt::col(tensor, 1))>);
  static_assert(!gradient<decltype(xt::view(tensor, xt::all(), xt::range(0, 2)))>);
  static_assert(!gradient<decltype(xt::strided_view(tensor, {1, xt::ellipsis()}))>);

  auto row = xt::row(tensor, 1);
  const xt::xtensor<float, 1> orthogonal{4, -3, 0};
  row(2) = 0;
  adasum::adasum_pair(adasum::serial_space{}, row, orthogonal, row);
  CHECK(elements_of(tensor) == numbers{0, 1, 2, 7, 1, 0});
}

#endif

namespace {

/// Takes twice what is in memory.
struct doubling_accessor {
  using element_type = float;
  using reference = float;
  using data_handle_type = float*;
  using offset_policy = doubling_accessor;
  reference access(float* first, std::size_t i) const { return 2 * first[i]; }
  float* offset(float* first, std::size_t i) const { return first + i; }
};

/// As another layout, but of which several indices may mean one element.
template <class Layout>
struct repeating {
  template <class Extents>
  struct mapping : Layout::template mapping<Extents> {
    using layout_type = repeating;
    using Layout::template mapping<Extents>::mapping;
    static constexpr bool is_always_unique() { return false; }
  };
};

#ifdef __cpp_lib_mdspan
struct of_the_standard_library {
  using extents = std::dextents<int, 2>;
  using right = std::layout_right;
  using left = std::layout_left;
  using stride = std::layout_stride;
  template <class T, class Layout = right, class Accessor = std::default_accessor<T>>
  using mdspan = std::mdspan<T, extents, Layout, Accessor>;
};
#endif

#if __has_include(<mdspan/mdspan.hpp>)
struct of_kokkos {
  using extents = Kokkos::dextents<int, 2>;
  using right = Kokkos::layout_right;
  using left = Kokkos::layout_left;
  using stride = Kokkos::layout_stride;
  template <class T, class Layout = right, class Accessor = Kokkos::default_accessor<T>>
  using mdspan = Kokkos::mdspan<T, extents, Layout, Accessor>;
};
#endif

/// mdspan's contiguous layouts are read in the order in which they are stored; whatever else there may be is refused.
template <class Library>
void check_mdspan() {
  using left = typename Library::left;
  std::vector<float> memory{3, 0, 0, 4};
  const typename Library::template mdspan<float> rows(memory.data(), 2, 2);
  typename Library::template mdspan<const float, left> columns(memory.data(), 2, 1);
  CHECK(elements_of(rows) == numbers{3, 0, 0, 4});
  CHECK(elements_of(columns) == numbers{3, 0});
  CHECK(elements_of(typename Library::template mdspan<float>(nullptr, 0, 2)).empty());
  static_assert(mutable_gradient<decltype(rows)> && !mutable_gradient<decltype(columns)>);

  using of_any_strides = typename Library::template mdspan<float, typename Library::stride>;
  using computed = typename Library::template mdspan<float, left, doubling_accessor>;
  using repeated = typename Library::template mdspan<float, repeating<left>>;
  static_assert(!gradient<of_any_strides> && !gradient<computed> && !gradient<repeated>);
  static_assert(!gradient<typename Library::template mdspan<int>>);

  const std::vector<float> orthogonal{0, 1, 2, 0};
  adasum::adasum_pair(adasum::serial_space{}, rows, orthogonal, rows);
  CHECK(memory == std::vector<float>{3, 1, 2, 4});
}

}  // namespace

#ifdef __cpp_lib_mdspan
TEST_CASE("std::mdspan") { check_mdspan<of_the_standard_library>(); }
#endif
#if __has_include(<mdspan/mdspan.hpp>)
TEST_CASE("mdspan of Kokkos") { check_mdspan<of_kokkos>(); }
#endif

}  // namespace test_of_arrays_of_libraries
