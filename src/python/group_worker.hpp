// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <c10/util/intrusive_ptr.h>
#include <sys/types.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <adasum/communicators/c10d.hpp>
#include <adasum/detail/references/communicator_ref.hpp>
#include <adasum/exec/serial.hpp>

#include "device_order.hpp"

namespace adasum::python {

/// The thread on which all reductions of a process group are carried out, one after the other in the order in which they were
/// asked for, so that the caller, which is the backward pass, goes on. There is one for each group, as messages of two
/// reductions at once would be taken for one another.
class group_worker {
 public:
  /// Collective over the group.
  /// @param timeout, for_devices  see c10d_communicator
  /// @throws bad_input, c10d_error
  group_worker(c10::intrusive_ptr<::c10d::ProcessGroup> group, std::chrono::duration<double> timeout,
               c10::intrusive_ptr<::c10d::ProcessGroup> for_devices);
  group_worker(const group_worker&) = delete;
  group_worker& operator=(const group_worker&) = delete;
  /// Waits for what has been asked for, unless this is the thread itself: then that is done afterwards.
  ~group_worker();

  // For the jobs alone:
  const c10d_communicator& comm() const { return state_->comm; }
  /// The same for what is in memory of the host.
  adasum::detail::communicator_ref host_comm() const {
    static const serial_space only_copies(instruction_set::baseline);
    return adasum::detail::ref_to_communicator(only_copies, comm());
  }
  /// Connects the ranks for messages of this device, if they are not yet. Collective; throws on all ranks.
  void connect(at::Device device, const char* call);
  side_streams& streams() { return state_->streams; }

  /// What the thread does next: `work`, and then, unless the interpreter has ended, `complete`, which may use what is
  /// Python's. Neither may throw.
  /// @throws error  this object is of no use (is_abandoned)
  void submit(std::function<void()> work, std::function<void()> complete);
  /// Does this on the thread, at once if this is that, and blocks until it is done. @throws what it throws
  void carry_out(const std::function<void()>& work);

  /// Whether the caller is a job.
  bool is_this_thread() const { return std::this_thread::get_id() == thread_.get_id(); }
  /// Whether this object is of no use: the interpreter ends, or this is a process that was forked from the one with the
  /// thread. Then neither this object nor what its jobs use is destroyed.
  bool is_abandoned() const;

  /// The interpreter is about to end, maybe while ranks wait for each other: from now on, no thread touches what is Python's.
  /// Blocks while one does. To be called without the GIL.
  static void abandon_all();

 private:
  struct job {
    std::function<void()> work, complete;
  };

  struct state {
    c10d_communicator comm;
    c10::intrusive_ptr<::c10d::ProcessGroup> for_devices;
    std::optional<at::Device> connected;
    side_streams streams;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<job> jobs;
    bool ends = false;
  };

  static void run(const std::shared_ptr<state>& here);

  std::shared_ptr<state> state_;  // the thread's, too: a job may destroy this object
  pid_t process_;
  std::thread thread_;
};

}  // namespace adasum::python
