// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "config.hpp"

#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gram.hpp"
#include "message.hpp"
#include "scalar.hpp"
#include "segments.hpp"
#include "stage.hpp"

/// The four things that a user can supply: what to compute (rule), where (execution space), among which ranks (communicator),
/// in what order (schedule). The library uses only the members listed on this page, and tests check this
/// (tests/core/concepts/). What a concept requires comes first, then what is optional. An optional member whose parameters or
/// result differ from those stated here does not compile where the compiler can tell (not always if it is a template, not if it
/// is overloaded), and is treated as absent otherwise. The checkers below return the names of the optional members that are
/// taken.
///
/// <adasum/testing.hpp> has a checker for each of the four, which finds what no compiler can see. docs/add_a_rule.md and the
/// pages beside it show an example of each, with its check.
///
/// The values that these types receive and return are plain structs whose members are all public:
///   gram_view, pair_gram, pair_weights      core/gram.hpp       inner products, and the weights made of them
///   segments_view, index_range, slice       core/segments.hpp   which elements a kernel works on
///   outgoing, incoming, memory_kind         core/message.hpp    one message: peer, bytes, where they lie
///   stage, schedule_input                   core/stage.hpp      one stage of a schedule, and what it was made for
namespace adasum {

/// Whether two objects do the same can be asked: the class has no members, or has an operator==. One line is enough:
/// `friend bool operator==(const my_type&, const my_type&) = default;`
template <class Type>
concept comparable = std::is_empty_v<Type> || std::equality_comparable<Type>;

// ── rule: Gram matrix → weights ─────────────────────────────────────────────────────────────────────────────────────

/// @concept adasum::rule
/// A function of inner products, called once per segment: a pairwise_rule or a gram_rule. A rule that is both is used as a
/// pairwise one. The weights multiply the vectors.
///
/// A rule runs on every rank, and must return the same (or throw) on each of them for the same numbers. A plan works on a
/// copy of its rule, and so does a call, unless the caller gives the rule as an lvalue to be updated. So a rule must be
/// copyable; its operator() need not be const. `name`, a static or another data member, identifies the rule in reports and, by
/// its first 31 bytes, in the check that all ranks agree.
///
/// A pairwise rule that cannot throw should say so by noexcept. Otherwise, if gradients are so nearly parallel that a rule
/// might cancel them, the ranks exchange one more short message, to find out whether the rule has thrown on one of them. Gram
/// matrices hold finite numbers; a zero vector is one whose square is 0, and its weight is finite.
///
/// For calls that only enqueue (cuda_space::enqueue_combine, plan_enqueued_allreduce), a rule is copied to the device and
/// called there. So it must be trivially copyable, and its operator() must be marked ADASUM_HOST_DEVICE (core/config.hpp).
/// With the option --expt-relaxed-constexpr, nvcc also accepts a constexpr operator() without the mark.
///
/// Optional members:
///
/// - `static constexpr inner_products needs`: how good inner products must be, or that it uses none (core/gram.hpp); without
///   it, `usual`. Why: a rule that looks at small differences of inner products gets them in double, and one that does not look
///   at them costs no measuring.
/// - `bool whole_model() const`: whether one set of weights, from the Gram matrix of all segments together, serves every
///   segment. Why: the rule's formula is about whole gradients, not about layers.
/// - `int degree() const`: how the result scales if all gradients are multiplied by s. 1 (the default): it is multiplied by
///   s; 0: it stays the same (rules that mix unit vectors). Why: where squares leave the range of double, the library rescales
///   vectors, and must know what that does to the result.
/// - `parameters() const`: the values that the rule was made with, as a std::array<double, n> or another range of doubles.
///   Why: part of the check that all ranks agree. Without it, ranks whose rules have different members get different results
///   without noticing.
/// - `std::size_t fallbacks`: how often the rule has used the mean in place of its own weights. Why: for the report.
/// - `rule(gram, weights, k)`: in place of rule(gram, weights); k is the number of the segment (0 for the whole model). Why:
///   a rule may keep a state for each segment.
/// - `static constexpr bool leaves_out_nonfinite = true`: for rules of n vectors: vectors that hold Inf or NaN get weight 0,
///   and so do those whose norms are beyond 2^400 (2^126 for elements narrower than double) if others' are not. The rule is
///   asked about the other vectors. Why: a robust rule should not fail because one gradient has failed.

/// A rule for two vectors; n vectors are combined along the tree of tree_order.hpp.
template <class R>
concept pairwise_rule = std::copy_constructible<R> && requires(R& rule, const pair_gram& gram) {
  { rule(gram) } -> std::same_as<pair_weights>;
  { rule.name } -> std::convertible_to<std::string_view>;
};

/// A rule for n vectors at once, n being 1 or more: writes weights[i] for each i < gram.size().
template <class R>
concept gram_rule =
    std::copy_constructible<R> && requires(R& rule, gram_view gram, std::span<double> weights, std::size_t k) {
      requires requires { rule(gram, weights); } || requires { rule(gram, weights, k); };
      { rule.name } -> std::convertible_to<std::string_view>;
    };

template <class R>
concept rule = pairwise_rule<R> || gram_rule<R>;

// ── execution_space: where the arithmetic runs ──────────────────────────────────────────────────────────────────────

/// Where the arithmetic runs. A slice is a window of the flat vectors: the elements slice.range, in the segments
/// slice.segments; slice.local(k) are those of segment k, counted from slice.origin. `vectors` are n pointers to the element at
/// the origin in each vector, in memory of the space; so is `out`. Gram matrices and weights are arrays of the host; a Gram
/// matrix may be read after fence(). A space need not offer every element type: each call asks only for that of its gradients.
///
/// - `name`, a static or another data member, identifies the space in messages and, by its first 31 bytes, in the check that
///   all ranks agree. Spaces that round differently must have different names.
/// - `==` says whether two spaces do the same; not needed if the class has no members. Unless it is a device_space, a single call
///   keeps its plan on the communicator, with a copy of the space and memory of it (options::keep_plan).
/// - `allocate<T>(count)`: uninitialised elements in memory of the space. The returned object owns them and is movable; its
///   data() returns their address, which does not change when the object is moved. `count` may be 0.
/// - `measure(slice, vectors, gram)`: gram[k·packed_size(n) + packed_index(i, j)] = Σ vᵢ[x]·vⱼ[x] over the elements x of
///   segment k in the slice, for every segment k of the slice's view, 0 where it has none. Accumulated in double, or better
///   than float. The same values give the same bits, wherever they lie in memory. A diagonal entry is 0 only if the vector is
///   zero there: if a square underflows, it is the smallest positive double. It is Inf or NaN if the vector holds Inf or NaN.
/// - `mix(slice, vectors, weights, out)`: out[x] = Σᵢ weights[k·n + i]·vᵢ[x], k being the segment of x; nothing else is
///   written. `out` may be one of the vectors. A vector of weight 0 is not read, so NaN in it has no effect. A weight may be
///   larger or smaller than any T, such as that of a short vector beside a long one. The same values give the same bits,
///   wherever they lie. The weights may change or be freed once mix has returned.
/// - `copy(from, to, count)`: to[i] = from[i] for i < count; the two do not overlap.
/// - `fence()` returns when everything that was started has ended, so that the host may read the results.
///
/// Calls take effect in the order in which they are made. The members of one object are called from one thread at a time, but
/// ranks that are threads use copies of a space at the same time. All members are const, because a space is used through
/// const references. Optional members:
///
/// - 16-bit copies: for elements of U, a 16-bit scalar of the library's (described by scalar_traits<U>::format),
///   `allocate<U>(count)` and `copy(from, to, count)` from float to U, rounding to nearest even, and from U to float. Why:
///   for options::wire, which is refused where a space does not offer it.
/// - arithmetic in double: `measure_in_double(slice, vectors, gram)` and `mix_in_double(slice, vectors, weights, out)`, both or
///   neither: as measure and mix, with every product and sum in double. Why: rules may ask for accurate inner products, and
///   under rules of n vectors, two vectors whose sum is much shorter than they are are mixed so. If there are the elements
///   double, too, measure_in_double for them, and mix_in_double from T to an `out` of double and back (for a T of 16 bits by
///   way of float), many vectors are combined along a tree in groups, whose sums are kept in double.
/// - `for_recombining(space)`: a function in the space's namespace: a space for double, which also copies from T to double
///   and back, rounding to nearest even. Why: gradients that nearly cancel are combined there; without it, they are combined in
///   T, with larger rounding errors.
/// - `bool can_reach(address)`: whether kernels can use that address. Why: other memory is refused with a clear error; without
///   this member, every address is considered usable.
template <class E, class T = float>
concept execution_space = scalar<T> && std::copyable<E> &&
    requires(const E& space, const slice& part, std::span<const T* const> vectors, T* out, double* gram,
             const double* weights, std::size_t count) {
  { space.name } -> std::convertible_to<std::string_view>;
  { space.template allocate<T>(count).data() } -> std::same_as<T*>;
  requires std::movable<decltype(space.template allocate<T>(count))>;
  space.measure(part, vectors, gram);
  space.mix(part, vectors, weights, out);
  space.copy(static_cast<const T*>(out), out, count);
  space.fence();
} && comparable<E>;

/// A refinement: the host cannot read or write memory of the space. nccl_communicator asks for stream(), a cudaStream_t, and
/// device(), its number, as well.
///
/// - `upload(from, to, bytes)` starts a copy from the host's memory to the space's.
/// - `download(from, to, bytes)` starts a copy from the space's memory to the host's.
/// - `transfer(from, to, bytes)` starts a copy from the space's memory to that of the same or another space of its kind.
/// - `host_memory(bytes)`: a type: memory of the host from and to which copies can run beside other work, where there
///   is such memory; movable, with data().
/// - `event`: a type: a moment. space.record(event) puts it behind all that was started, event.wait() waits for that. Movable,
///   and made without arguments.
template <class E>
concept device_space =
    requires(const E& space, const void* from, void* to, std::size_t bytes, typename E::event& moment) {
      space.upload(from, to, bytes);
      space.download(from, to, bytes);
      space.transfer(from, to, bytes);
      { typename E::host_memory(bytes).data() } -> std::same_as<std::byte*>;
      requires std::movable<typename E::host_memory>;
      requires std::movable<typename E::event> && std::default_initializable<typename E::event>;
      space.record(moment);
      moment.wait();
    };

/// A refinement: `enqueue_combine(rule, slice, vectors, out)` starts measure → weigh → mix under a rule along the tree and
/// returns; by then it has read what it needs of the host's memory. For schedules on a stream (plan_enqueued_allreduce)
/// the steps are there too, with Gram matrices and weights in memory of the space, which stay until the step is taken
/// again:
///
/// - `measure_on_device(window, vectors)` returns the Gram matrix.
/// - `weigh_on_device(rule, gram, segments, n, leaves)` returns the weights.
/// - `mix_on_device(window, vectors, weights, out)`.
/// - `add_pieces(pieces, number, count, values)`: values[i] = Σₖ pieces[k·count + i].
/// - `write(values, to)` stores numbers of the host there.
/// - `allocate_in_order(count)`: as allocate, without waiting.
template <class E, class T, class Rule>
concept stream_ordered_space =
    execution_space<E, T> && device_space<E> &&
    requires(const E& space, const Rule& rule, const slice& part, std::span<const T* const> vectors, T* out,
             double* gram, const double* numbers, std::size_t count) {
      space.enqueue_combine(rule, part, vectors, out);
      { space.template measure_on_device<T>(part, vectors) } -> std::same_as<double*>;
      { space.weigh_on_device(rule, numbers, count, count, numbers) } -> std::same_as<double*>;
      space.template mix_on_device<T>(part, vectors, numbers, out);
      space.add_pieces(numbers, count, count, gram);
      space.write(std::span(numbers, count), gram);
      { space.template allocate_in_order<T>(count).data() } -> std::same_as<T*>;
    };

// ── communicator: among whom ────────────────────────────────────────────────────────────────────────────────────────

/// The ranks among which a reduction takes place, and the messages between them.
///
/// - `rank()`, `size()`: 0 <= rank() < size(), the same for the life of the communicator.
/// - `exchange(space, out, in)` starts all messages together and returns when all have been sent and received. outgoing.bytes
///   go to rank outgoing.peer; what rank incoming.peer sends is written to incoming.bytes. Between two ranks, messages
///   match in the order of the exchanges, and within an exchange in that of the spans. A peer is never this rank; a
///   message may have no bytes; either span may be empty. If outgoing.withheld is set, this rank has failed, and the
///   message is sent without bytes. If a message arrives whose size is not that of its buffer, exchange throws
///   communication_error, once all its other messages have been sent and received. Later exchanges must still work: a
///   rank that has failed goes on with them, so that no other rank waits for it. If exchange (or post) throws
///   std::bad_alloc, nothing has been sent or received; it is called again, once. memory_kind says whether bytes lie in
///   memory of the space, which makes a difference for a device_space alone; so does incoming.discarded.
///
/// Messages of all element types and spaces are sent as bytes. Only one thread uses a communicator at a time. Copies of a
/// communicator are handles to the same communicator. All members are const. Optional members, besides the refinements
/// below:
///
/// - `communicator_state& state()`: one object for all handles of a rank (core/communicator_state.hpp). Why: the library notes
///   there that a plan is in flight, and then refuses other reductions, because their messages would be taken for those of the
///   plan. It keeps plans of single calls there, so that a call that is made again finds its plan. The communicator says there
///   that this rank has given up waiting for another (messages may then still be in flight, so the library never frees its
///   memory for them), and how long this rank waits for others in memory that ranks share.
/// - `reserve(messages, longest)` and, where there is post, `reserve(messages, longest, pending)`: called when a plan is made.
///   Why: after that, an exchange of at most so many messages each way, each of at most so many bytes of the host's memory, does
///   not throw std::bad_alloc.
/// - `nodes()`: a range of int: the node of each rank (any numbers, equal for ranks of one node), the same on all ranks, and
///   local. Why: schedules choose by schedule_input::nodes; and if there are several nodes, no memory is shared for a plan that
///   needs all ranks there.
///
/// A type `pending` in a communicator is that of the concept posting_communicator.
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
/// exchange() does; the exchange has ended then. An object is used for one exchange after another, so that it can keep
/// its memory.
template <class Pending>
concept pending_exchange = std::default_initializable<Pending> && requires(Pending& pending) {
  { pending.test() } -> std::same_as<bool>;
  pending.wait();
};

/// A refinement: post(space, out, in, pending) starts what exchange() does and returns at once. The messages are made
/// and taken while test() and wait() run, by this thread or by the network; no thread need be made for them. The bytes
/// stay where they are until the exchange has ended; the spans `out` and `in` are there during post() only. There is one
/// exchange in flight at a time. What one rank posts, another may receive by exchange(), and the other way round.
/// Without this refinement, a plan's start() begins nothing, and its test() or wait() runs all of it.
template <class C, class E>
concept posting_communicator =
    communicator_for<C, E> && pending_exchange<typename C::pending> &&
    requires(const C& comm, const E& space, std::span<const outgoing> out, std::span<const incoming> in,
             typename C::pending& pending) { comm.post(space, out, in, pending); };

/// Memory that ranks share, as one of them sees it. std::atomic<std::uint64_t> works there between ranks.
///
/// - `ranks()`: the ranks that share it, in ascending order, including this one; the same as long as the memory exists.
/// - `of(i)`: the memory of ranks()[i], aligned to 64 bytes, and zero at first. Each rank may destroy its object at any time,
///   without waiting for the others, which can still use all of the memory.
/// - `same_address_space`: whether any address of one rank is valid on the others (threads of one process).
///
/// Optional members:
///
/// - `bool has_left(i)`: whether ranks()[i] has left for good. Why: then others stop waiting for it.
/// - `progress()`: called while a rank waits there for others. Why: the messages of some communicators move only when they are
///   called.
template <class Memory>
concept shared_window = std::movable<Memory> && requires(const Memory& memory, std::size_t i) {
  { memory.ranks() } -> std::convertible_to<std::span<const int>>;
  requires std::ranges::borrowed_range<decltype(memory.ranks())>;
  { memory.of(i) } -> std::same_as<std::byte*>;
  { Memory::same_address_space } -> std::convertible_to<bool>;
};

/// A refinement: `share(bytes)` gives every rank that many bytes, which the ranks that it shares memory with can read and write
/// in place: those of its node, or all ranks where there is no nodes(). Collective over all ranks; throws a shared_memory_error
/// on all of them where there is no room.
template <class C>
concept shared_memory_communicator = requires(const C& comm, std::size_t bytes) {
  { comm.share(bytes) } -> shared_window;
};

// ── schedule: in what order ─────────────────────────────────────────────────────────────────────────────────────────

/// The order in which ranks exchange their data.
///
/// - `name`, a static or another data member, identifies the schedule in reports and, by its first 31 bytes, in the check that
///   all ranks agree.
/// - `==` says whether two schedules do the same; not needed if the class has no members. Single calls find their plans by it
///   (options::keep_plan).
/// - `stages(rank, size, input)`: the stages in which `rank` of `size` ranks takes part, first to last (core/stage.hpp). A
///   pure function: every rank asks for the stages of all ranks where they compare what they are about to do. One rank alone
///   may have none; among several, each has at least one. It may throw bad_input. A rule that is applied along the tree of
///   tree_order.hpp must find that tree in the stages. The compiler cannot see whether it does; check_schedule in
///   <adasum/testing.hpp> checks it, and refuses, for example, a chain of ranks.
/// - `supports_gram_rules`: whether, where schedule_input::along_tree is false, stages() are one stage of all ranks; only
///   then can a rule that is not pairwise, or rules::adasum_linear, run on the schedule.
///
/// Optional members, all of them const (or static):
///
/// - `uses_shared_memory(size, input)`: a shared_memory_use (core/stage.hpp); `none` if absent. Why: ranks that share memory
///   then need no messages. Where the answer is another one, stages() is asked with input.in_place set for gradients in memory
///   that ranks share. A stage whose members are all the ranks that share this memory works there in place, and sends no
///   elements, if each survivor gets a part of its own (a sole survivor: everything) or if the stage is `published`; so do
///   stages that are `grouped`. Under `preferred` and `buffer_if_all`, a plan works in place if all stages do and no rank has
///   stayed behind at a grouped one before the last. If this member is static constexpr and says `required`, calls with a
///   communicator without shared memory do not compile.
/// - `leaf_ranks(size, input)`: a std::vector<int>: which rank's gradient each leaf of the tree is; empty if leaf i is that
///   of rank i. Why: a tree that suits the network may have its leaves in another order.
/// - `parameters()`: the values that the schedule was made with, as a std::vector<double> or another range of doubles. Why:
///   ranks compare them whenever they set something up. Stages tell most schedules of one name apart, but not how they would
///   use shared memory.
template <class S>
concept schedule = std::copyable<S> && requires(const S& schedule, int rank, int size, const schedule_input& input) {
  { schedule.name } -> std::convertible_to<std::string_view>;
  { S::supports_gram_rules } -> std::convertible_to<bool>;
  { schedule.stages(rank, size, input) } -> std::same_as<std::vector<stage>>;
} && comparable<S>;

/// @cond internal
namespace detail {
/// Whether a pairwise rule is applied in the order ((0, 1), 2), 3 … and not along the tree: rules::adasum_linear.
template <class R>
inline constexpr bool is_left_fold = false;

/// Whether a rule stands for another one, which is chosen at run time: rules::any_rule. Only then is it known whether a schedule
/// can run that.
template <class R>
inline constexpr bool is_chosen_at_run_time = false;

/// What the library's own types alone are asked for, and classes that derive from them: friends that take one of these.
///   std::string_view rounding_of(own_type, space)                      what spaces of one name that round alike have in common
///   must_not_be_kept(own_type, space)                                  declared if no single call may keep the space's memory
///   inner_rule_of(own_type, schedule)                                  the rule for stages that are marked `inner`
///   std::string_view chosen_name_of(own_type, schedule, size, input)   of the schedule that runs
struct own_type {};
template <class S>
concept has_inner_rule = requires(const S& schedule) { inner_rule_of(own_type{}, schedule); };
template <class S>
concept chooses_schedule = requires(const S& schedule, int size, const schedule_input& input) {
  { chosen_name_of(own_type{}, schedule, size, input) } -> std::same_as<std::string_view>;
};
}  // namespace detail
/// @endcond

/// A rule that is applied along the tree of tree_order.hpp, so that any schedule can run it.
template <class R>
concept tree_rule = pairwise_rule<R> && !detail::is_left_fold<std::remove_cv_t<R>>;

/// Whether schedule S can run rule R; for rules::any_rule, whether it can run some of the rules that it may hold.
template <class S, class R>
concept schedule_for = schedule<S> &&
    (tree_rule<R> || (rule<R> && (S::supports_gram_rules || detail::is_chosen_at_run_time<std::remove_cv_t<R>>)));

}  // namespace adasum
