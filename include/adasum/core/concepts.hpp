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
// A pure function of inner products, called once per segment. The weights multiply the vectors. It runs on every rank,
// and must return the same (or throw) on each of them for the same numbers.
// `name` identifies the rule in reports and in the check that all ranks agree.
// Optional:
//   static constexpr bool needs_gram = false     it looks at no inner product (a sum)
//   static constexpr bool linear_order = true    a pairwise rule that is applied in the order ((0, 1), 2), 3 … and not
//                                                along the tree
//   bool whole_model() const                     whether one set of weights, from the Gram matrix of all segments
//                                                together, serves every segment
//   int degree() const                           1 (also if absent): gradients times s give the result times s; 0: the
//                                                same result (rules that mix unit vectors)
//   std::size_t fallbacks                        how often it has used another rule in place of its own; for the report
//   rule(gram, weights, k)                       in place of rule(gram, weights): is told the number k of the segment
//                                                (0 for the whole model), for rules that keep state

/// A rule for two vectors; n vectors are combined along the tree of tree_order.hpp.
template <class R>
concept pairwise_rule = requires(R& rule, const pair_gram& gram) {
  { rule(gram) } -> std::same_as<pair_weights>;
  { R::name } -> std::convertible_to<std::string_view>;
};

/// A rule for n vectors at once: writes weights[i] for i < gram.size().
template <class R>
concept gram_rule = requires(R& rule, gram_view gram, std::span<double> weights, std::size_t k) {
  requires requires { rule(gram, weights); } || requires { rule(gram, weights, k); };
  { R::name } -> std::convertible_to<std::string_view>;
};

template <class R>
concept rule = pairwise_rule<R> || gram_rule<R>;

// ── execution_space: where the arithmetic runs ──────────────────────────────────────────────────────────────────────
// `vectors` are n pointers to the element at the slice's origin in each vector, in memory of the space; so is `out`.
// Gram matrices and weights are arrays of the host; a Gram matrix may be read after fence().
//
//   allocate  uninitialised elements in memory of the space, owned by what is returned.
//   measure   gram[k·packed_size(n) + packed_index(i, j)] = Σ vᵢ[x]·vⱼ[x] over the elements x of segment k in the
//             slice, for every segment k of the slice's view, 0 where it has none. Accumulated in double, or better than
//             float. The same bits for the same values, wherever they lie in memory. A diagonal entry is 0 only where
//             the vector is: where a square underflows, the smallest positive double is returned in its place.
//   mix       out[x] = Σᵢ weights[k·n + i]·vᵢ[x], k being the segment of x. `out` may be one of the vectors. A vector
//             of weight 0 is not read: NaN in it does not matter.
//   copy      to[i] = from[i] for i < count; the two do not overlap.
//   fence     returns when everything that was started has ended, so that the host may read the results.
// Optional: copy between a gradient's element type and a 16-bit one, rounding to nearest even, for options::wire;
// `round_bytes`, how many bytes of gradients one local round of measure and mix takes where it has several segments (if
// it is not there, all of them); `arithmetic()`, a name that differs between spaces which round differently.
template <class E, class T = float>
concept execution_space = scalar<T> && std::copyable<E> &&
                          requires(const E& space, const slice& window, std::span<const T* const> vectors, T* out,
                                   double* gram, const double* weights, std::size_t count) {
                            { E::name } -> std::convertible_to<std::string_view>;
                            { space.template allocate<T>(count).data() } -> std::same_as<T*>;
                            space.measure(window, vectors, gram);
                            space.mix(window, vectors, weights, out);
                            space.copy(static_cast<const T*>(out), out, count);
                            space.fence();
                          };

/// A refinement: the host cannot read or write memory of the space.
///   upload(from, to, bytes)    starts a copy from the host's memory to the space's
///   download(from, to, bytes)  starts a copy from the space's memory to the host's
///   transfer(from, to, bytes)  starts a copy from the space's memory to that of the same or another space of its kind
///   host_memory(bytes)         memory of the host from and to which copies run beside its work, where there is such
///   event                      a moment: space.record(event) puts it behind all that was started, event.wait() waits
/// Optional: can_reach(address), whether kernels can work there.
template <class E>
concept device_space =
    requires(const E& space, const void* from, void* to, std::size_t bytes, typename E::event& moment) {
      space.upload(from, to, bytes);
      space.download(from, to, bytes);
      space.transfer(from, to, bytes);
      { typename E::host_memory(bytes).data() } -> std::same_as<std::byte*>;
      space.record(moment);
      moment.wait();
    };

/// A refinement: combine_async(rule, window, vectors, out) starts measure → weigh → mix under a rule along the tree and
/// returns; what it needs of the host's memory it has read by then. For schedules on a stream
/// (collective/stream_reduction.hpp) the steps are there too, with Gram matrices and weights in memory of the space,
/// which stay until the step is taken again:
///   measure_on_device(window, vectors)                     → gram
///   weigh_on_device(rule, gram, segments, n, leaves)       → weights
///   mix_on_device(window, vectors, weights, out)
///   add_pieces(pieces, number, count, values)              values[i] = Σₖ pieces[k·count + i]
///   write(values, to)                                      numbers of the host
///   allocate_in_order(count)                               as allocate, without waiting
template <class E, class T, class Rule>
concept stream_ordered_space =
    execution_space<E, T> && device_space<E> &&
    requires(const E& space, const Rule& rule, const slice& window, std::span<const T* const> vectors, T* out,
             double* gram, const double* numbers, std::size_t count) {
      space.combine_async(rule, window, vectors, out);
      { space.template measure_on_device<T>(window, vectors) } -> std::same_as<double*>;
      { space.weigh_on_device(rule, numbers, count, count, numbers) } -> std::same_as<double*>;
      space.template mix_on_device<T>(window, vectors, numbers, out);
      space.add_pieces(numbers, count, count, gram);
      space.write(std::span(numbers, count), gram);
      { space.template allocate_in_order<T>(count).data() } -> std::same_as<T*>;
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

/// A refinement: enqueue(space, out, in) starts messages of elements in memory of the space, in the order of its
/// stream, and returns. Nothing is ever withheld there.
template <class C, class E>
concept stream_ordered_communicator =
    communicator_for<C, E> && requires(const C& comm, const E& space, std::span<const outgoing> out,
                                       std::span<const incoming> in) { comm.enqueue(space, out, in); };

/// An exchange in flight: test() says whether it has ended, without blocking; wait() returns when it has. Both throw as
/// exchange() does, and it has ended then. An object is used for one exchange after another, so that it can keep its
/// memory.
template <class P>
concept pending_exchange = std::default_initializable<P> && requires(P& pending) {
  { pending.test() } -> std::same_as<bool>;
  pending.wait();
};

/// A refinement: post(space, out, in, pending) starts what exchange() does and returns at once. The messages are made
/// and taken while test() and wait() run, by this thread or by the network; no thread is made for them.
template <class C, class E>
concept posting_communicator =
    communicator_for<C, E> && pending_exchange<typename C::pending> &&
    requires(const C& comm, const E& space, std::span<const outgoing> out, std::span<const incoming> in,
             typename C::pending& pending) { comm.post(space, out, in, pending); };

/// Memory that ranks share, as it is seen from one of them.
///   ranks          the ranks that share it, ascending; this one included
///   of(place)      the memory of ranks()[place], aligned to 64 bytes, zero when it was made
///   every_address  whether any address of one rank is valid on the others (threads of one process)
/// Optional: has_left(place), whether that rank will never come again; alive(), whether the memory can still be
/// reached; bytes(), how many each rank has, where that need not be what this one asked for.
template <class M>
concept shared_memory = std::movable<M> && requires(const M& memory, std::size_t place) {
  { memory.ranks() } -> std::convertible_to<std::span<const int>>;
  { memory.of(place) } -> std::same_as<std::byte*>;
  { M::every_address } -> std::convertible_to<bool>;
};

/// A refinement: share(bytes) gives every rank that many bytes, which the ranks that it shares memory with can read and
/// write in place. Collective over all ranks. @throws shared_memory_error  there is no room; on all ranks
template <class C>
concept shared_memory_communicator = requires(const C& comm, std::size_t bytes) {
  { comm.share(bytes) } -> shared_memory;
};

// ── schedule: in what order ─────────────────────────────────────────────────────────────────────────────────────────
//   stages    the levels at which `rank` of `size` ranks takes part, first to last (stage.hpp). A pure function.
// `all_at_once` says whether stages() can be one stage of all ranks when the problem asks for it; only then can a rule
// that is not pairwise run on it.
// Optional:
//   chosen_name(size, problem)             the name of the schedule that runs, for one that chooses among others
//   stages_in_place(rank, size, problem)   the stages for a gradient in memory that ranks share: a stage whose members
//                                          are all the ranks that share it works there in place and sends nothing
//   shared_memory_only = true              the stages make sense in such memory only
//   inner                                  the rule for the stages that are marked so
//   leaf_ranks(size)                       which rank's gradient is which leaf, if not each its own
template <class S>
concept schedule = std::copyable<S> && requires(const S& order, int rank, int size, const problem& what) {
  { S::name } -> std::convertible_to<std::string_view>;
  { S::all_at_once } -> std::convertible_to<bool>;
  { order.stages(rank, size, what) } -> std::same_as<std::vector<stage>>;
};

/// A rule that is applied along the tree of tree_order.hpp, so that any schedule can run it.
template <class R>
concept tree_rule = pairwise_rule<R> && !requires { requires R::linear_order; };

/// Whether schedule S can run rule R.
template <class S, class R>
concept schedule_for = schedule<S> && (tree_rule<R> || (rule<R> && S::all_at_once));

/// Whether a rule looks at inner products at all.
template <rule R>
constexpr bool needs_gram = [] {
  if constexpr (requires {
                  { R::needs_gram } -> std::convertible_to<bool>;
                })
    return static_cast<bool>(R::needs_gram);
  else
    return true;
}();

/// How the result follows the gradients' scale: s·gradients give s^degree·result.
template <rule R>
constexpr int degree_of(const R& rule) {
  if constexpr (requires {
                  { rule.degree() } -> std::same_as<int>;
                })
    return rule.degree();
  else
    return 1;
}

/// How often a rule has fallen back; 0 for one that never does.
template <rule R>
constexpr std::size_t fallbacks_of(const R& rule) {
  if constexpr (requires {
                  { rule.fallbacks } -> std::convertible_to<std::size_t>;
                })
    return rule.fallbacks;
  else
    return 0;
}

}  // namespace adasum
