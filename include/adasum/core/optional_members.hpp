// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "communicator_state.hpp"
#include "concepts.hpp"
#include "space_members.hpp"

/// What the optional members of rules, communicators and execution spaces (concepts.hpp) say, or what holds where they are
/// absent.
namespace adasum {

// ── rules ──

namespace detail {

// Whether a rule has a member, as the page says it. A schedule's parameters are asked for likewise.
template <class R>
concept says_what_it_needs = requires { typename std::integral_constant<inner_products, R::needs>; };
template <class R>
concept says_whether_nonfinite = requires { typename std::bool_constant<R::leaves_out_nonfinite>; };
template <class R>
concept has_degree = requires(const R& rule) {
  { rule.degree() } -> std::same_as<int>;
};
template <class Type>
concept has_parameters = requires(const Type& type) {
  { type.parameters() } -> std::convertible_to<std::span<const double>>;
};
template <class R>
concept counts_fallbacks = requires(const R& rule) {
  { rule.fallbacks } -> std::convertible_to<std::size_t>;
};
template <class R>
concept says_whether_whole_model = requires(const R& rule) {
  { rule.whole_model() } -> std::convertible_to<bool>;
};

}  // namespace detail

/// How good inner products must be for a rule.
template <rule R>
constexpr inner_products needs_of = [] {
  if constexpr (detail::says_what_it_needs<R>)
    return R::needs;
  else
    return inner_products::usual;
}();

/// Whether a rule looks at inner products at all.
template <rule R>
constexpr bool needs_gram = needs_of<R> != inner_products::none;

/// Whether a rule of n vectors compares their distances.
template <rule R>
constexpr bool needs_distances = !pairwise_rule<R> && needs_of<R> == inner_products::distances;

/// Whether inner products are to be made in double for a rule.
template <rule R>
constexpr bool needs_accurate_gram = needs_of<R> == inner_products::accurate || needs_distances<R>;

/// Whether vectors that are not finite are left out under a rule.
template <rule R>
constexpr bool leaves_out_nonfinite = [] {
  if constexpr (detail::says_whether_nonfinite<R>)
    return R::leaves_out_nonfinite;
  else
    return false;
}();

/// How the result follows the gradients' scale: s·gradients give s^degree·result.
template <rule R>
constexpr int degree_of(const R& rule) {
  if constexpr (detail::has_degree<R>)
    return rule.degree();
  else
    return 1;
}

/// What a rule or a schedule was made with; nothing if it does not say.
template <class Type>
std::vector<double> parameters_of(const Type& type) {
  if constexpr (detail::has_parameters<Type>) {
    const auto parameters = type.parameters();
    const std::span<const double> all(parameters);
    return {all.begin(), all.end()};
  } else {
    return {};
  }
}

/// How often a rule has fallen back; 0 for one that never does.
template <rule R>
constexpr std::size_t fallbacks_of(const R& rule) {
  if constexpr (detail::counts_fallbacks<R>)
    return rule.fallbacks;
  else
    return 0;
}

// ── communicators ──

namespace detail {

template <class Comm>
concept has_state = requires(const Comm& comm) {
  { comm.state() } -> std::same_as<communicator_state&>;
};

template <class Comm>
concept says_nodes = requires(const Comm& comm) {
  { comm.nodes() } -> std::convertible_to<std::span<const int>>;
};

/// Null for a communicator that has none.
template <class Comm>
communicator_state* state_of([[maybe_unused]] const Comm& comm) {
  if constexpr (has_state<Comm>)
    return &comm.state();
  else
    return nullptr;
}

}  // namespace detail

// ── execution spaces ──

namespace detail {

/// Whether a space keeps sums of vectors of T in double, and measures them there: then it can combine many vectors in
/// groups, whose results are combined further.
template <class Space, class T>
inline constexpr bool combines_in_groups =
    requires(const Space& space, const slice& part, std::span<const T* const> vectors,
             std::span<const double* const> sums, const double* weights, double* gram, double* doubles, T* out) {
      requires execution_space<Space, double>;
      space.measure_in_double(part, vectors, gram);
      space.measure_in_double(part, sums, gram);
      space.mix_in_double(part, vectors, weights, doubles);
      space.mix_in_double(part, sums, weights, out);
    };

/// Whether a space can be told to measure and to mix vectors of T in double.
template <class Space, class T>
inline constexpr bool measures_in_double =
    requires(const Space& space, const slice& part, std::span<const T* const> vectors, double* gram) {
      space.measure_in_double(part, vectors, gram);
    };
template <class Space, class T>
inline constexpr bool mixes_in_double =
    requires(const Space& space, const slice& part, std::span<const T* const> vectors, const double* weights, T* out) {
      space.mix_in_double(part, vectors, weights, out);
    };

// ── execution spaces and schedules ──

/// Whether both do the same.
template <comparable Type>
bool do_the_same(const Type& a, const Type& b) {
  if constexpr (std::is_empty_v<Type>)
    return true;
  else
    return a == b;
}

}  // namespace detail
}  // namespace adasum
