// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>

#include "scalar.hpp"
#include "segments.hpp"

namespace adasum::detail {

// ── which of Eigen's objects are arrays without gaps ──
// They are known by their members, so Eigen is not included.

/// Any dense object of Eigen's: a matrix, vector or array, a Map, Ref or block of one, an expression.
template <class A>
concept eigen_object = requires {
  typename A::Scalar;
  typename A::PlainObject;
  A::IsVectorAtCompileTime;
  A::InnerStrideAtCompileTime;
  A::InnerSizeAtCompileTime;
};

/// The stride of a Map or Ref from one column (of a row-major matrix: row) to the next: 0 where there is no gap, -1
/// where it is known only at run time.
template <class A>
constexpr int eigen_outer_stride = -1;
template <template <class, int, class> class View, class Matrix, int Options, class Stride>
constexpr int eigen_outer_stride<View<Matrix, Options, Stride>> = Stride::OuterStrideAtCompileTime;

/// Whether the type alone says that the elements lie one after the other.
template <eigen_object A>
constexpr bool eigen_is_contiguous = [] {
  if constexpr (!requires(A& a) {
                  a.data();
                  requires static_cast<int>(A::InnerStrideAtCompileTime) == 1;
                })
    return false;  // an expression, or with gaps
  else if constexpr (static_cast<bool>(A::IsVectorAtCompileTime) || requires(A& a) { a.conservativeResize(1, 1); })
    return true;  // a vector, or an object that owns its elements
  else
    return eigen_outer_stride<A> == 0 ||
           (eigen_outer_stride<A> > 0 && eigen_outer_stride<A> == static_cast<int>(A::InnerSizeAtCompileTime));
}();

}  // namespace adasum::detail

/// What the public calls accept as a gradient.
namespace adasum {

/// How a foreign array type is read as contiguous elements. Specialise with `static std::span<T> span(const A&)` for a
/// type that is neither a contiguous range nor one of Eigen's, as exec/ does for Kokkos::View and device vectors.
template <class A>
struct gradient_traits {};

namespace detail {

template <class E>
constexpr bool is_std_array = false;
template <class E, std::size_t Length>
constexpr bool is_std_array<std::array<E, Length>> = sizeof(std::array<E, Length>) == Length * sizeof(E);

/// The scalars of arrays of arrays, which lie one after the other: float[3][4] is 12 floats.
template <class E>
auto flattened(E* first, std::size_t count) {
  if constexpr (std::is_array_v<E>) {
    return flattened(reinterpret_cast<std::remove_extent_t<E>*>(first), count * std::extent_v<E>);
  } else if constexpr (is_std_array<std::remove_cv_t<E>>) {
    using element = std::remove_reference_t<decltype((*first)[0])>;
    return flattened(reinterpret_cast<element*>(first), count * std::tuple_size_v<E>);
  } else {
    return std::span<E>(first, count);
  }
}

}  // namespace detail

/// std::vector, std::span, std::array, T[n], T[n][m], …
template <class A>
  requires(!detail::eigen_object<A>) && requires(A& array) { std::span(array); }
struct gradient_traits<A> {
  /// Its elements, one after the other.
  template <class R>
  static auto span(R&& range) {
    // Of a view of xtensor's, data() is where the whole array begins.
    const std::span all(std::ranges::begin(range), static_cast<std::size_t>(std::ranges::size(range)));
    return detail::flattened(all.data(), all.size());
  }
};

/// Vectors, matrices and arrays of Eigen, and Maps, Refs and blocks of which the type alone says that there is no gap
/// between elements. A matrix is read in the order in which it is stored.
template <detail::eigen_object A>
  requires detail::eigen_is_contiguous<A>
struct gradient_traits<A> {
  /// Its elements, in the order in which they are stored.
  template <class Matrix>
  static auto span(Matrix&& matrix) {
    return std::span(matrix.data(), static_cast<std::size_t>(matrix.size()));
  }
};

namespace detail {

template <class A>
using span_of_t = decltype(gradient_traits<std::remove_cvref_t<A>>::span(std::declval<A&>()));

}  // namespace detail

/// The element type of a gradient.
template <class A>
using element_t = std::remove_cv_t<typename detail::span_of_t<A>::element_type>;

/// A contiguous array of one scalar type: std::vector<float>, std::span<const double>, float[16], Eigen::VectorXf, …
template <class A>
concept gradient = requires { typename detail::span_of_t<A>; } && scalar<element_t<A>>;

/// A gradient whose elements can be written.
template <class A>
concept mutable_gradient = gradient<A> && !std::is_const_v<typename detail::span_of_t<A>::element_type>;

/// Several gradients of one element type: std::vector<std::vector<float>>, std::array<std::span<double>, 4>, …
template <class A>
concept gradient_list = detail::input_range<A> && std::forward_iterator<detail::iterator_of<A>> &&
                        gradient<std::iter_reference_t<detail::iterator_of<A>>>;

namespace detail {

template <gradient A>
auto span_of(A&& array) {
  return gradient_traits<std::remove_cvref_t<A>>::span(array);
}

template <gradient A>
std::span<const element_t<A>> const_span_of(A&& array) {
  return span_of(array);
}

}  // namespace detail
}  // namespace adasum
