// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "../../core/report.hpp"
#include "../../core/segments.hpp"
#include "../../core/stage.hpp"
#include "../references/communicator_ref.hpp"
#include "../references/erased.hpp"
#include "../references/space_ref.hpp"
#include "collective_setup.hpp"
#include "plan_arguments.hpp"
#include "result_layout.hpp"

namespace adasum::detail {

class plan_inputs;
class stage_executor;

/// A reduction that is set up once and run many times: what an allreduce_plan holds, whatever its type. Copies of the call's
/// arguments, the inputs, up to two executors (one works in memory that the ranks share, one sends messages), and which of
/// them is at work.
class plan {
 public:
  /// As a part of a larger set-up. What the arguments refer to need not outlive it. @throws what plan_allreduce throws
  plan(const plan_arguments& given, collective_setup& together);
  plan(const plan&) = delete;
  plan& operator=(const plan&) = delete;
  ~plan();

  /// A run in flight comes to an end: see allreduce_plan's destructor.
  void abandon() noexcept;
  /// Whether messages may still be in flight, and MPI may write to memory of the plan at any time: then that stays for good.
  bool must_stay() const;
  /// Whether a call with these arguments would set up the same.
  bool is_for(const plan_arguments& call) const;
  segments_view segments() const;
  bool gives_parts() const;
  /// What this rank gets of the result.
  index_range wanted() const;
  const void* space() const { return space_.get(); }
  void* rule() const { return rule_.get(); }
  const report& last_report() const { return *last_; }
  bool is_in_flight() const { return in_flight_ != nullptr; }

  /// Memory for a gradient. Collective the first time. @param call  for messages
  std::byte* buffer(const char* call);
  /// The same as a part of a larger set-up.
  std::byte* buffer(collective_setup& together);
  /// Before a run of a plan that is kept: the call's handle to the communicator, which lives until the end of the run.
  void communicate_by(const communicator_ref& comm) { handle_of_call_ = comm.comm(); }
  /// Begins a run of a plan that is kept; wait() follows, in which the ranks meet first: others may mean another plan, or none.
  void start_call(std::byte* elements);

  /// What is wrong with a gradient; empty if nothing.
  std::string problem_with(const std::byte* elements, std::size_t count) const;
  /// After an exception of wait(): whether some ranks may have been about to do something else.
  bool did_not_agree() const;
  // A run: see allreduce_plan. @param problem  what problem_with() says
  const report& run(std::byte* elements, std::size_t count, const std::string& problem);
  void start(std::byte* elements, std::size_t count, const std::string& problem);
  bool test();
  const report& wait();

 private:
  // Where a gradient lies, as ranks compare it.
  static constexpr std::string_view of_caller = "in the caller's memory", copied = "copied to shared memory",
                                    of_plan = "in the plan's buffer";

  plan_arguments of_copies(plan_arguments given) const;
  const communicator_ref& comm() const;
  plan_names names() const { return plan_names::of(gives_parts()); }
  std::string call_name(const char* call) const;
  void require_idle(const char* call) const;
  stage_executor& in_flight(const char* call) const;
  void begin(std::byte* elements, std::size_t count, const std::string& problem, bool posts, const char* call);
  void meet(collective_setup& together) const;
  void make_in_place(shared_memory_use use, collective_setup& together);
  void require_in_place() const;
  void make_buffer(collective_setup& together);
  stage_executor& usual() const { return in_place_ ? *in_place_ : *by_messages_; }
  bool is_buffer(const std::byte* elements) const { return buffer_ && elements == *buffer_; }

  const void* handle_of_call_;  // to the communicator, for a plan that is kept with it: that does not hold it
  owned_object space_, comm_, rule_, schedule_;
  std::unique_ptr<plan_inputs> inputs_;
  std::optional<space_memory> own_memory_;    // for buffer(), where ranks share none; a reduction may still use it
  std::unique_ptr<stage_executor> in_place_;  // in shared memory
  std::unique_ptr<stage_executor> by_messages_;
  bool tried_to_share_ = false;
  std::optional<std::byte*> buffer_;
  stage_executor* in_flight_ = nullptr;
  const report* last_ = nullptr;
};

/// Destroys a plan, if nothing uses its memory any more (plan::must_stay).
struct plan_deleter {
  void operator()(plan* held) const noexcept;
};
using plan_ptr = std::unique_ptr<plan, plan_deleter>;

}  // namespace adasum::detail

#if ADASUM_DEFINITIONS

#include <exception>
#include <utility>

#include "../../core/communicator_state.hpp"
#include "../../core/error.hpp"
#include "../../core/options.hpp"
#include "../../core/scalar.hpp"
#include "../../core/tracing.hpp"
#include "call_signature.hpp"
#include "engine_settings.hpp"
#include "plan_inputs.hpp"
#include "stage_executor.hpp"

namespace adasum::detail {

ADASUM_INLINE void plan_deleter::operator()(plan* held) const noexcept {
  held->abandon();
  if (!held->must_stay()) delete held;
}

ADASUM_INLINE plan_arguments plan::of_copies(plan_arguments given) const {
  given.space = given.space.to(space_);
  given.comm = comm_ ? given.comm.to(comm_, space_) : given.comm.through(handle_of_call_, space_);
  given.rule = given.rule.to(rule_);
  given.schedule = given.schedule.to(schedule_);
  return given;
}

ADASUM_INLINE plan::plan(const plan_arguments& given, collective_setup& together)
    : handle_of_call_(given.comm.comm()),
      space_(given.space.copy_of_space()),
      comm_(given.purpose == plan_purpose::kept ? no_object() : given.comm.copy()),
      rule_(given.rule.copy_of_rule()),
      schedule_(given.schedule.copy()),
      inputs_(std::make_unique<plan_inputs>(of_copies(given))) {
  const trace_range traced(active_tracer, "set up", 0);
  if (inputs_->choices().wire != wire_format::same && inputs_->space().packing() == nullptr)
    throw bad_input({given.call,
                     ": options::wire needs float gradients and an execution space that rounds them; here the ",
                     "elements are ", to_string(given.space.format()), " and the space is ", given.space.name()});
  inputs_->learn_shards(of_caller, [&] { meet(together); });
  auto by_messages = inputs_->settings(false);  // tells what is wrong with the schedule
  const auto use = inputs_->uses_shared_memory();
  const bool shares = use == shared_memory_use::preferred && comm().can_share();
  inputs_->prepare_agreement(shares ? copied : of_caller);
  if (shares || use == shared_memory_use::required) make_in_place(use, together);
  if (!in_place_) by_messages_ = std::make_unique<stage_executor>(std::move(by_messages));
  if (use == shared_memory_use::required) require_in_place();
  last_ = &usual().last_report();
  const bool meets_again = inputs_->compares() || inputs_->purpose() == plan_purpose::kept;
  const bool shares_votes = meets_again && in_place_ && in_place_->is_in_place() && comm().state() && !comm().votes() &&
                            !together.has_votes();
  if (shares_votes) together.prepare_votes();
  meet(together);
  if (shares_votes) {
    together.share_votes();
    meet(together);
  }
  if (inputs_->purpose() == plan_purpose::kept) inputs_->begin_runs();
}

ADASUM_INLINE plan::~plan() { abandon(); }
ADASUM_INLINE void plan::abandon() noexcept {
  if (auto* const running = std::exchange(in_flight_, nullptr)) {
    comm().set_reduction_in_flight(false);
    running->abandon();
  }
}
ADASUM_INLINE bool plan::did_not_agree() const { return usual().did_not_agree(); }
ADASUM_INLINE bool plan::must_stay() const { return comm().gave_up(); }
ADASUM_INLINE bool plan::is_for(const plan_arguments& call) const { return inputs_->is_for(call); }
ADASUM_INLINE segments_view plan::segments() const { return inputs_->segments(); }
ADASUM_INLINE bool plan::gives_parts() const { return inputs_->to().in_parts; }
ADASUM_INLINE index_range plan::wanted() const { return inputs_->wanted(); }

ADASUM_INLINE std::byte* plan::buffer(const char* call) {
  if (!buffer_) {
    require_idle(call);
    collective_setup(names().buffer, comm(), inputs_->compares()).run([&](collective_setup& together) {
      make_buffer(together);
    });
  }
  return *buffer_;
}
ADASUM_INLINE std::byte* plan::buffer(collective_setup& together) {
  if (!buffer_) make_buffer(together);
  return *buffer_;
}

ADASUM_INLINE void plan::meet(collective_setup& together) const {
  together.meet(inputs_->signature(), inputs_->segments(), inputs_->memory());
}
ADASUM_INLINE std::string plan::problem_with(const std::byte* elements, std::size_t count) const {
  return inputs_->problem_with(elements, count, names().type);
}
ADASUM_INLINE const report& plan::run(std::byte* elements, std::size_t count, const std::string& problem) {
  begin(elements, count, problem, false, "operator()");
  return wait();
}

ADASUM_INLINE void plan::start_call(std::byte* elements) {
  require_no_reduction(comm(), inputs_->call(), "");
  usual().start(elements, false, inputs_->signature(), inputs_->memory(), true, nullptr);
  in_flight_ = &usual();
  comm().set_reduction_in_flight(true);
}

ADASUM_INLINE void plan::start(std::byte* elements, std::size_t count, const std::string& problem) {
  const bool posts = comm().can_post();
  begin(elements, count, problem, posts, "start");
  if (posts) in_flight_->test();
}

ADASUM_INLINE bool plan::test() {
  auto& running = in_flight("test");
  return comm().can_post() ? running.test() : running.finish_run();
}

ADASUM_INLINE const report& plan::wait() {
  auto& running = in_flight("wait");
  in_flight_ = nullptr;
  comm().set_reduction_in_flight(false);  // wait() ends it, well or not
  try {
    last_ = &running.wait();
  } catch (...) {
    // The others may have been in a single call, and then have forgotten what they keep.
    if (inputs_->purpose() == plan_purpose::of_user && running.did_not_agree() && comm().state())
      comm().state()->plans().clear();
    throw;
  }
  return *last_;
}

ADASUM_INLINE const communicator_ref& plan::comm() const { return inputs_->comm(); }
ADASUM_INLINE std::string plan::call_name(const char* call) const {
  return joined({names().member, call});
}
ADASUM_INLINE void plan::require_idle(const char* call) const {
  if (in_flight_) throw bad_input({call_name(call), ": a reduction is in flight; call wait() first"});
}
ADASUM_INLINE stage_executor& plan::in_flight(const char* call) const {
  comm().require_usable(names().type);
  if (!in_flight_) throw bad_input({call_name(call), ": no reduction is in flight; call start() first"});
  return *in_flight_;
}

/// @param posts  whether the reduction goes on in test(), too
ADASUM_INLINE void plan::begin(std::byte* elements, std::size_t count, const std::string& problem, bool posts,
                               const char* call) {
  comm().require_usable(names().type);
  require_idle(call);
  require_no_reduction(comm(), names().member, call);
  auto& chosen = in_place_ && (is_buffer(elements) || !by_messages_) ? *in_place_ : *by_messages_;
  std::exception_ptr own_problem;
  if (!problem.empty() && !inputs_->compares_in_runs())
    own_problem = exception_from([&] { return bad_input(problem); });
  if (inputs_->meets_in_runs()) {
    const auto location = !inputs_->compares()            ? std::string_view()
                          : is_buffer(elements)           ? of_plan
                          : &chosen == by_messages_.get() ? of_caller
                                                          : std::string_view();
    // Once there is a buffer, the same stages reduce what lies there and, where ranks share addresses, what lies elsewhere.
    const bool is_usual = !buffer_ || is_buffer(elements);
    chosen.start(elements, posts, inputs_->signature_of_run(count, problem, location), inputs_->memory(), is_usual,
                 std::move(own_problem));
  } else if (own_problem) {
    chosen.start_refusing(own_problem, posts);
  } else {
    chosen.start(elements, posts);
  }
  in_flight_ = &chosen;
  comm().set_reduction_in_flight(true);
}

ADASUM_INLINE void plan::make_in_place(shared_memory_use use, collective_setup& together) {
  if (std::exchange(tried_to_share_, true) || use == shared_memory_use::none || !comm().can_share()) return;
  const bool all_of_them = use == shared_memory_use::preferred || use == shared_memory_use::buffer_if_all;
  if (all_of_them && !inputs_->is_one_node()) return;  // those of a node share memory
  try {
    auto settings = inputs_->settings(true);
    // The others have been told of a schedule that can be built: not of the one that takes its place.
    if (!inputs_->schedule_problem().empty()) throw bad_input(inputs_->schedule_problem());
    settings.transport.before_sharing = [&](std::size_t bytes) {
      return together.meet(inputs_->signature(), inputs_->segments(), inputs_->memory(), bytes);
    };
    in_place_ = std::make_unique<stage_executor>(std::move(settings));
  } catch (const shared_memory_error&) {  // on all ranks: by messages, then
    if (use == shared_memory_use::required) throw;
    return;
  }
  if (all_of_them && comm().size() > 1 && !in_place_->is_in_place()) in_place_.reset();
}

ADASUM_INLINE void plan::require_in_place() const {
  if (comm().size() > 1 && (!in_place_ || !in_place_->is_in_place()))
    throw bad_input({inputs_->call(), ": ", inputs_->schedule().name(), " needs ranks that all share memory"});
}

/// If it fails, on all ranks, the plan is as it was.
ADASUM_INLINE void plan::make_buffer(collective_setup& together) {
  const bool shared_before = tried_to_share_;
  std::unique_ptr<stage_executor> by_messages;
  try {
    inputs_->begin_buffer();
    make_in_place(inputs_->uses_shared_memory(), together);
    std::byte* memory = usual().shared_gradient();
    if (!memory) {
      if (!own_memory_) own_memory_.emplace(inputs_->space().allocate(inputs_->length()));
      memory = own_memory_->data();
    } else if (!by_messages_) {
      // From now on a gradient of the caller's is reduced by messages, since that memory is the caller's, too.
      by_messages = std::make_unique<stage_executor>(inputs_->settings(false));
    }
    meet(together);
    buffer_ = memory;
  } catch (...) {
    if (!shared_before) in_place_.reset();
    tried_to_share_ = shared_before;
    throw;
  }
  if (by_messages) by_messages_ = std::move(by_messages);
}

}  // namespace adasum::detail

#endif
