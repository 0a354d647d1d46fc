// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "gram.hpp"
#include "message.hpp"
#include "scalar.hpp"
#include "segments.hpp"
#include "stage.hpp"

/// The four things that a user can supply: what to compute (rule), where (execution space), among whom (communicator),
/// in what order (schedule). Nothing else is asked of a type than what stands on this page.
namespace adasum {

// ── rule: Gram matrix → weights ─────────────────────────────────────────────────────────────────────────────────────
// A pure function of inner products, called once per segment. The weights multiply the vectors.
// `name` identifies the rule in reports and in the check that all ranks agree.
// Optional: `static constexpr bool needs_gram = false` for a rule that looks at no inner product (a sum).

/// A rule for two vectors; n vectors are combined along the tree of tree_order.hpp.
template <class R>
concept pairwise_rule = requires(R& rule, const pair_gram& gram) {
  { rule(gram) } -> std::same_as<pair_weights>;
  { R::name } -> std::convertible_to<std::string_view>;
};

/// A rule for n vectors at once: writes weights[i] for i < gram.size().
template <class R>
concept gram_rule = requires(R& rule, gram_view gram, std::span<double> weights) {
  rule(gram, weights);
  { R::name } -> std::convertible_to<std::string_view>;
};

template <class R>
concept rule = pairwise_rule<R> || gram_rule<R>;

// ── execution_space: where the arithmetic runs ──────────────────────────────────────────────────────────────────────
// `vectors` are n pointers to the element at the slice's origin in each vector, in memory of the space; so is `out`. Gram
// matrices and weights are arrays of the host; a Gram matrix may be read after fence().
//
//   allocate  uninitialised elements in memory of the space, owned by what is returned.
//   measure   gram[k·packed_size(n) + packed_index(i, j)] = Σ vᵢ[x]·vⱼ[x] over the elements x of segment k in the slice,
//             for every segment k of the slice's view, 0 where it has none. Accumulated in double, or better than
//             float. The same bits for the same values, wherever they lie in memory. A diagonal entry is 0 only where
//             the vector is: where a square underflows, the smallest positive double is returned in its place.
//   mix       out[x] = Σᵢ weights[k·n + i]·vᵢ[x], k being the segment of x. `out` may be one of the vectors.
//   copy      to[i] = from[i] for i < count; the two do not overlap.
//   fence     returns when everything that was started has ended, so that the host may read the results.
// Optional: `segment_batch`, how many segments one local round of measure and mix takes (all, if it is not there), and
// `arithmetic()`, a name that differs between spaces which round differently.
template <class E, class T = float>
concept execution_space =
    scalar<T> && std::copyable<E> &&
    requires(const E& space, const slice& window, std::span<const T* const> vectors, T* out, double* gram,
             const double* weights, std::size_t count) {
      { E::name } -> std::convertible_to<std::string_view>;
      { space.template allocate<T>(count).data() } -> std::same_as<T*>;
      space.measure(window, vectors, gram);
      space.mix(window, vectors, weights, out);
      space.copy(static_cast<const T*>(out), out, count);
      space.fence();
    };

// ── communicator: among whom ────────────────────────────────────────────────────────────────────────────────────────
//   rank, size  0 <= rank() < size(), the same for the life of the communicator.
//   exchange    starts all messages together and returns when all have been sent and received. Between two ranks,
//               messages match in the order in which they stand in the spans; a peer is never this rank. When a message
//               that arrives does not have the size of its room (a rank that failed withholds its bytes), it throws
//               communication_error, once nothing more will be written to the rooms.
// Copies of a communicator are handles to the same one.
template <class C, class E>
concept communicator_for = std::copyable<C> && requires(const C& comm, const E& space, std::span<const outgoing> out,
                                                        std::span<const incoming> in) {
  { comm.rank() } -> std::same_as<int>;
  { comm.size() } -> std::same_as<int>;
  comm.exchange(space, out, in);
};

// ── schedule: in what order ─────────────────────────────────────────────────────────────────────────────────────────
//   stages    the levels at which `rank` of `size` ranks takes part, first to last (stage.hpp). A pure function.
// `all_at_once` says whether stages() can be one stage of all ranks when the problem asks for it; only then can a rule
// that is not pairwise run on it.
template <class S>
concept schedule = std::copyable<S> && requires(const S& order, int rank, int size, const problem& what) {
  { S::name } -> std::convertible_to<std::string_view>;
  { S::all_at_once } -> std::convertible_to<bool>;
  { order.stages(rank, size, what) } -> std::same_as<std::vector<stage>>;
};

/// Whether schedule S can run rule R.
template <class S, class R>
concept schedule_for = schedule<S> && (pairwise_rule<R> || (rule<R> && S::all_at_once));

/// Whether a rule looks at inner products at all.
template <rule R>
constexpr bool needs_gram = [] {
  if constexpr (requires { { R::needs_gram } -> std::convertible_to<bool>; })
    return static_cast<bool>(R::needs_gram);
  else
    return true;
}();

}  // namespace adasum
