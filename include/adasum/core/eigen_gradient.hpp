// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <cstddef>
#include <span>

/// Which of Eigen's objects are arrays without gaps. They are known by their members, so Eigen is not included.
namespace adasum::detail {

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
