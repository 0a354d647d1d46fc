// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls that the compiler refuses, each on a line of its own, with what the page calls it and a part of what the compiler says.
// This file is compiled once; refused.py sees to it that each of these lines is refused in these words, and no other line is.
// What is alike for two calls would be told once, so that arguments differ in something that makes no other difference.
#include <vector>

#include <adasum/adasum.hpp>

namespace {

using namespace adasum;

template <int>
struct some_rule : rules::mean {};
template <int>
struct some_schedule : schedules::all_to_all {};
template <int>
struct rule_of_all : rules::multi_krum {};
/// A communicator of a program's own that shares no memory.
struct without_memory {
  int rank() const { return 0; }
  int size() const { return 1; }
  template <class Space>
  void exchange(const Space&, std::span<const outgoing>, std::span<const incoming>) const {}
};

const serial_space exec;
const self_communicator comm;

[[maybe_unused]] void local_calls(std::vector<float>& a, std::vector<float>& b, const std::vector<std::vector<float>>& all,
                                  const segments& cut, const parts& dealt_out, const shard& mine) {
  adasum_pair(exec, a, b, b, some_rule<1>{});                 // adasum_pair × another rule: this call takes none
  adasum_pair(exec, a, b, b, some_schedule<1>{});             // adasum_pair × a schedule: this call takes no schedule
  adasum_pair(exec, a, b, b, options{});                      // adasum_pair × options: this call takes no options
  adasum_pair(exec, a, b, b, dealt_out);                      // adasum_pair × parts: this call takes no parts
  adasum_pair(exec, a, b, b, mine);                           // adasum_pair × a shard: this call takes no shard
  adasum_tree(exec, all, a, some_rule<2>{});                  // adasum_tree × another rule: this call takes none
  adasum_tree(exec, all, a, some_schedule<2>{});              // adasum_tree × a schedule: this call takes no schedule
  adasum_tree(exec, all, a, cut, options{});                  // adasum_tree × options: this call takes no options
  adasum_tree(exec, all, a, cut, dealt_out);                  // adasum_tree × parts: this call takes no parts
  adasum_tree(exec, all, a, cut, mine);                       // adasum_tree × a shard: this call takes no shard
  combine(exec, all, a, some_schedule<3>{});                  // combine × a schedule: this call takes no schedule
  combine(exec, all, a, dealt_out);                           // combine × parts: this call takes no parts
  combine(exec, all, a, mine);                                // combine × a shard: this call takes no shard
  plan_accumulator<float>(exec, cut, rule_of_all<1>{});       // plan_accumulator × rules of all at once: an accumulator needs a rule for two gradients
  plan_accumulator<float>(exec, cut, some_schedule<4>{});     // plan_accumulator × a schedule: this call takes no schedule
  plan_accumulator<float>(exec, cut, options{});              // plan_accumulator × options: this call takes no options
  plan_accumulator<float>(exec, cut, dealt_out);              // plan_accumulator × parts: this call takes no parts
  plan_accumulator<float>(exec, cut, mine);                   // plan_accumulator × a shard: this call takes no shard
}

[[maybe_unused]] void calls_of_ranks(std::vector<float>& g, const segments& cut, const parts& dealt_out, const shard& mine,
                                     const std::vector<std::size_t>& lengths) {
  adasum_allreduce(exec, comm, g, some_rule<5>{});            // adasum_allreduce × another rule: this call takes none
  adasum_allreduce(exec, comm, g, dealt_out);                 // adasum_allreduce × parts: this call takes no parts
  combine_allreduce(exec, comm, g, dealt_out);                // combine_allreduce × parts: this call takes no parts
  adasum_reduce_scatter(exec, comm, g, some_rule<6>{});       // adasum_reduce_scatter × another rule: this call takes none
  adasum_reduce_scatter(exec, comm, g, mine);                 // adasum_reduce_scatter × a shard: this call takes no shard
  combine_reduce_scatter(exec, comm, g, mine);                // combine_reduce_scatter × a shard: this call takes no shard
  adasum_reduce(exec, comm, g, 0, some_rule<7>{});            // adasum_reduce × another rule: this call takes none
  adasum_reduce(exec, comm, g, 0, dealt_out);                 // adasum_reduce × parts: this call takes no parts
  adasum_reduce(exec, comm, g, 0, mine);                      // adasum_reduce × a shard: this call takes no shard
  combine_reduce(exec, comm, g, 0, dealt_out);                // combine_reduce × parts: this call takes no parts
  combine_reduce(exec, comm, g, 0, mine);                     // combine_reduce × a shard: this call takes no shard
  plan_allreduce<float>(exec, comm, cut, dealt_out);          // plan_allreduce × parts: this call takes no parts
  plan_reduce_scatter<float>(exec, comm, cut, mine);          // plan_reduce_scatter × a shard: this call takes no shard
  plan_reduce<float>(exec, comm, cut, 0, dealt_out);          // plan_reduce × parts: this call takes no parts
  plan_reduce<float>(exec, comm, cut, 0, mine);               // plan_reduce × a shard: this call takes no shard
  plan_bucketed<float>(exec, comm, lengths, 1, schedules::automatic{}, dealt_out);  // plan_bucketed × parts: this call takes no parts
  plan_bucketed<float>(exec, comm, lengths, 1, schedules::automatic{}, mine);       // plan_bucketed × a shard: this call takes no shard
  enqueue_adasum_allreduce(exec, comm, g, some_rule<8>{});    // enqueue_adasum_allreduce × another rule: this call takes none
  enqueue_adasum_allreduce(exec, comm, g, cut, dealt_out);    // enqueue_adasum_allreduce × parts: this call takes no parts
  enqueue_adasum_allreduce(exec, comm, g, cut, mine);         // enqueue_adasum_allreduce × a shard: this call takes no shard
  plan_enqueued_allreduce<float>(exec, comm, cut, options{}, dealt_out);  // plan_enqueued_allreduce × parts: this call takes no parts
  plan_enqueued_allreduce<float>(exec, comm, cut, options{}, mine);       // plan_enqueued_allreduce × a shard: this call takes no shard
}

[[maybe_unused]] void other_things(std::vector<float>& a, const segments& cut, const std::vector<int>& nodes) {
  const schedules::hierarchical in_sockets{nodes, rules::mean{}};
  auto to_root = plan_reduce<float>(exec, comm, cut, 0);
  auto in_parts = plan_reduce_scatter<float>(exec, comm, cut);
  using schedules::hierarchical, schedules::recursive_halving, schedules::shared_memory;
  combine_allreduce(exec, comm, a, rule_of_all<2>{}, recursive_halving{});  // rules of all at once × recursive_halving: this schedule combines gradients pair by pair
  adasum_allreduce(exec, without_memory{}, a, shared_memory{});             // no shared memory × shared_memory: this schedule works in memory that the ranks share
  adasum_allreduce(exec, comm, a, hierarchical{nodes, rules::sum{}, in_sockets});  // hierarchical × hierarchical: that has no inner rule of its own
  enqueue_adasum_pair(exec, a, a, a);     // enqueue_adasum_pair × serial_space: write the call without enqueue_
  delta_allreduce(to_root, a, a);         // delta_allreduce × plan_reduce: write a plan of plan_allreduce
  delta_allreduce(in_parts, a, a);        // delta_allreduce × plan_reduce_scatter: write a plan of plan_allreduce
}

}  // namespace
