// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <ranges>
#include <type_traits>
#include <vector>

#include "../core/concepts.hpp"
#include "../core/gradient.hpp"
#include "../rules/adasum.hpp"

/// What the compiler says of an argument that is no gradient: one line that begins with what to write instead. A call
/// asks these functions first, and compiles the rest of itself only where they are true:
///
///     if constexpr (detail::is_gradient_argument<A>()) { … }
namespace adasum::detail {

/// What is wrong with a type as a gradient.
enum class gradient_fault {
  none,
  pointer,
  packed_bits,
  eigen_expression,
  eigen_gaps,
  several_arrays,
  not_an_array,
  element_type
};

template <class A>
consteval gradient_fault fault_of() {
  if constexpr (gradient<A>)
    return gradient_fault::none;
  else if constexpr (std::is_pointer_v<A>)
    return gradient_fault::pointer;
  else if constexpr (std::is_same_v<A, std::vector<bool>>)
    return gradient_fault::packed_bits;
  else if constexpr (eigen_object<A>)
    return !eigen_is_contiguous<A> ? requires(A& a) {
      a.data();
    } ? gradient_fault::eigen_gaps : gradient_fault::eigen_expression : gradient_fault::element_type;
  else if constexpr (gradient_list<A>)
    return gradient_fault::several_arrays;
  else if constexpr (requires { typename span_of_t<A>; })
    return gradient_fault::element_type;
  else
    return gradient_fault::not_an_array;
}

template <class A>
consteval bool check_gradient() {
  constexpr auto fault = fault_of<A>();
  static_assert(fault != gradient_fault::pointer,
                "write std::span(pointer, length): a pointer alone does not say how long the gradient is");
  static_assert(fault != gradient_fault::packed_bits,
                "write std::vector<float> or std::vector<double>: the elements of std::vector<bool> are bits");
  static_assert(fault != gradient_fault::eigen_expression,
                "write expression.eval(), or assign it to a vector or matrix: an Eigen expression has no elements "
                "in memory");
  static_assert(fault != gradient_fault::eigen_gaps,
                "write the elements to a vector or matrix of their own: the type of this Eigen object allows gaps "
                "between them (if there are none, write std::span(m.data(), m.size()))");
  static_assert(fault != gradient_fault::several_arrays,
                "write one flat array, with adasum::segments for its parts: a gradient is one array, this is several");
  static_assert(
      fault != gradient_fault::not_an_array,
      "write a contiguous array (std::vector, std::array, std::span(pointer, length), an Eigen::VectorXf), or "
      "specialise adasum::gradient_traits: adasum cannot read this argument as an array");
  static_assert(fault != gradient_fault::element_type,
                "write float or double elements, or specialise adasum::scalar_traits for 16-bit ones: adasum does not "
                "know this element type");
  return fault == gradient_fault::none;
}

/// Whether the argument is a gradient; if not, the compiler says why.
template <class A>
consteval bool is_gradient_argument() {
  return check_gradient<std::remove_cvref_t<A>>();
}

/// Whether the argument is a gradient that can be written.
template <class A>
consteval bool is_output_argument() {
  if constexpr (check_gradient<std::remove_cvref_t<A>>()) {
    static_assert(mutable_gradient<A>,
                  "write to an array that is not const: the result goes to the elements of this argument");
    return mutable_gradient<A>;
  } else {
    return false;
  }
}

template <class A>
constexpr bool is_range_of_numbers = false;
template <std::ranges::range A>
constexpr bool is_range_of_numbers<A> = std::is_arithmetic_v<std::ranges::range_value_t<A>>;

/// Whether the argument is several gradients.
template <class A>
consteval bool is_gradient_list_argument() {
  constexpr bool is_rule = rule<std::remove_cvref_t<A>>;
  constexpr bool is_several = std::ranges::forward_range<A> && !is_range_of_numbers<std::remove_cvref_t<A>>;
  static_assert(!is_rule, "write the rule after the gradients and the output: combine(space, gradients, out, rule)");
  static_assert(is_rule || is_several,
                "write a range of gradients, such as std::vector<std::vector<float>> or std::array{a, b}");
  if constexpr (is_rule || !is_several)
    return false;
  else
    return check_gradient<std::remove_cvref_t<std::ranges::range_reference_t<A>>>();
}

/// Whether all gradients and the output have elements of one type.
template <class T, class... A>
consteval bool have_elements_of() {
  constexpr bool same = (std::is_same_v<element_t<A>, T> && ...);
  static_assert(same, "write gradients and an output of one element type: these differ");
  return same;
}

/// Whether the space works on elements of T.
template <class Space, class T>
consteval bool is_space_argument() {
  static_assert(comparable<Space> || !requires(const Space& space) { space.fence(); },
                "this execution space has members, but no operator==: write `friend bool operator==(const my_space&, const "
                "my_space&) = default;`");
  static_assert(execution_space<Space, T>,
                "write an execution space for these elements: the first argument lacks something that an execution space has");
  return execution_space<Space, T>;
}

/// Whether the space combines elements of T on a stream.
template <class Space, class T>
consteval bool is_stream_ordered_argument() {
  constexpr bool has_stream = stream_ordered_space<Space, T, rules::adasum>;
  static_assert(has_stream, "write the call without enqueue_: the first argument is not an execution space with a stream");
  return has_stream;
}

/// Whether the communicator sends what lies in memory of the space.
template <class Comm, class Space>
consteval bool is_communicator_argument() {
  constexpr bool is_handle = std::is_pointer_v<Comm> || std::is_integral_v<Comm>;
  static_assert(
      !is_handle,
      "write adasum::mpi_communicator{comm}, or adasum::nccl_communicator{comm}, made once and used for every "
      "call: the second argument is a bare handle");
  if constexpr (!is_handle)
    static_assert(communicator_for<Comm, Space>,
                  "write a communicator for this execution space: the second argument lacks something that a communicator has");
  return communicator_for<Comm, Space>;
}

/// Whether the communicator's messages, too, go in the order of the space's stream.
template <class Comm, class Space>
consteval bool is_stream_ordered_communicator_argument() {
  constexpr bool has_stream = stream_ordered_communicator<Comm, Space>;
  static_assert(has_stream,
                "write the call without enqueue: the second argument is not a communicator that works on a stream");
  return has_stream;
}

}  // namespace adasum::detail
