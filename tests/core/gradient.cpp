// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/core/gradient.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/pair.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <deque>
#include <list>
#include <span>
#include <type_traits>
#include <vector>

#ifdef ADASUM_TEST_EIGEN
#include <Eigen/Core>
#endif

namespace test_of_core_gradient {

/// What is a gradient, and which elements it has.

using adasum::element_t;
using adasum::gradient;
using adasum::gradient_list;
using adasum::mutable_gradient;

namespace {

/// The array [0, 1, 2, …] of so many elements, read as a gradient.
template <class A>
bool counts_from_zero(A& array, std::size_t length) {
  const auto elements = adasum::detail::const_span_of(array);
  if (elements.size() != length) return false;
  for (std::size_t x = 0; x < length; ++x)
    if (elements[x] != static_cast<element_t<A>>(x)) return false;
  return true;
}

template <class A, class B>
constexpr bool has_elements = std::is_same_v<element_t<A>, B>;

}  // namespace

TEST_CASE("flat arrays") {
  std::vector<float> vector{0, 1, 2};
  const std::vector<double> constant{0, 1, 2, 3};
  std::array<double, 2> array{0, 1};
  float c_array[] = {0, 1, 2, 3, 4};
  CHECK(counts_from_zero(vector, 3));
  CHECK(counts_from_zero(constant, 4));
  CHECK(counts_from_zero(array, 2));
  CHECK(counts_from_zero(c_array, 5));
  const std::span pointer_and_length(c_array + 0, 4);
  CHECK(counts_from_zero(pointer_and_length, 4));
  static_assert(mutable_gradient<std::vector<float>&> && !mutable_gradient<const std::vector<double>&>);
  static_assert(mutable_gradient<const std::span<float>> && !mutable_gradient<std::span<const float>>);
  static_assert(!gradient<std::deque<float>> && !gradient<std::list<float>> && !gradient<std::vector<bool>>);
  static_assert(!gradient<float*> && !gradient<std::vector<int>> && !gradient<std::vector<std::vector<float>>>);
}

TEST_CASE("arrays of arrays are read row by row") {
  float c_array[3][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}};
  double three_deep[2][1][2] = {{{0, 1}}, {{2, 3}}};
  const std::array<std::array<float, 2>, 3> array{{{0, 1}, {2, 3}, {4, 5}}};
  std::vector<std::array<double, 2>> vector{{0, 1}, {2, 3}};
  const std::vector<std::array<float, 2>> none;
  CHECK(counts_from_zero(c_array, 12));
  CHECK(counts_from_zero(three_deep, 4));
  CHECK(counts_from_zero(array, 6));
  CHECK(counts_from_zero(vector, 4));
  CHECK(counts_from_zero(none, 0));
  static_assert(mutable_gradient<float(&)[3][4]> && !mutable_gradient<const float(&)[3][4]>);
  static_assert(!mutable_gradient<decltype((array))> && has_elements<decltype(array), float>);
  // Where several gradients are asked for, the rows are these gradients.
  static_assert(gradient_list<std::array<std::array<float, 2>, 3>> && gradient_list<float(&)[3][4]>);
}

TEST_CASE("a two-dimensional array is combined in place") {
  float a[2][2] = {{1, 0}, {0, 0}};
  const float b[2][2] = {{0, 0}, {0, 2}};
  adasum::adasum_pair(adasum::serial_space{}, a, b, a);
  CHECK(a[0][0] == 1);
  CHECK(a[1][1] == 2);
}

#ifdef ADASUM_TEST_EIGEN

namespace {

using row_major = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class M, class Stride>
using strided = Eigen::Map<M, 0, Stride>;

}  // namespace

TEST_CASE("Eigen's vectors, matrices and arrays, in the order in which they are stored") {
  Eigen::VectorXf vector(4);
  vector << 0, 1, 2, 3;
  const Eigen::RowVector3d row(0, 1, 2);
  Eigen::MatrixXf matrix(2, 3);
  matrix << 0, 2, 4, 1, 3, 5;
  row_major rows(2, 2);
  rows << 0, 1, 2, 3;
  Eigen::ArrayXXd array(2, 2);
  array << 0, 2, 1, 3;
  const Eigen::Matrix<float, 2, 2, Eigen::DontAlign> fixed = matrix.leftCols(2);
  CHECK(counts_from_zero(vector, 4));
  CHECK(counts_from_zero(row, 3));
  CHECK(counts_from_zero(matrix, 6));
  CHECK(counts_from_zero(rows, 4));
  CHECK(counts_from_zero(array, 4));
  CHECK(counts_from_zero(fixed, 4));
  static_assert(mutable_gradient<Eigen::VectorXf&> && !mutable_gradient<const Eigen::VectorXf&>);
  static_assert(has_elements<Eigen::VectorXd, double> && !gradient<Eigen::VectorXi>);
}

TEST_CASE("Maps, Refs and blocks of Eigen's without gaps, by their type") {
  std::vector<float> memory{0, 1, 2, 3, 4, 5};
  Eigen::Map<Eigen::VectorXf> vector(memory.data(), 6);
  Eigen::Map<const Eigen::MatrixXf> matrix(memory.data(), 2, 3);
  Eigen::Ref<Eigen::VectorXf> reference = vector;
  Eigen::MatrixXf columns = matrix;
  auto first = columns.col(0);
  auto head = vector.head(3);
  CHECK(counts_from_zero(vector, 6));
  CHECK(counts_from_zero(matrix, 6));
  CHECK(counts_from_zero(reference, 6));
  CHECK(counts_from_zero(first, 2));
  CHECK(counts_from_zero(head, 3));
  static_assert(gradient<strided<Eigen::VectorXf, Eigen::InnerStride<1>>>);
  static_assert(gradient<strided<Eigen::Matrix3f, Eigen::OuterStride<3>>>);
  static_assert(mutable_gradient<decltype(vector)&> && !mutable_gradient<decltype(matrix)&>);
}

TEST_CASE("what may have gaps, and what has no elements in memory, is no gradient") {
  Eigen::MatrixXf m(3, 3);
  row_major rows(3, 3);
  static_assert(!gradient<decltype(m.row(0))> && gradient<decltype(rows.row(0))>);
  static_assert(!gradient<decltype(rows.col(0))>);
  static_assert(!gradient<decltype(m.topRows(2))> && !gradient<decltype(m.block(0, 0, 2, 2))>);
  static_assert(!gradient<decltype(m.diagonal())> && !gradient<decltype(m + m)>);
  static_assert(!gradient<strided<Eigen::VectorXf, Eigen::InnerStride<>>>);
  static_assert(!gradient<strided<Eigen::VectorXf, Eigen::InnerStride<2>>>);
  static_assert(!gradient<strided<Eigen::MatrixXf, Eigen::OuterStride<>>>);
  static_assert(!gradient<strided<Eigen::Matrix3f, Eigen::OuterStride<4>>>);
  static_assert(!gradient<Eigen::Ref<Eigen::MatrixXf>>);
}

TEST_CASE("Eigen's vectors and Maps are combined in place") {
  Eigen::Vector2f a(3, 0);
  std::vector<float> memory{0, 4};
  Eigen::Map<Eigen::VectorXf> b(memory.data(), 2);
  adasum::adasum_pair(adasum::serial_space{}, a, b, b);
  CHECK(memory == std::vector<float>{3, 4});
  adasum::adasum_pair(adasum::serial_space{}, a, a, Eigen::Map<Eigen::VectorXf>(memory.data(), 2));
  CHECK(memory == std::vector<float>{3, 0});
}

#endif

}  // namespace test_of_core_gradient
