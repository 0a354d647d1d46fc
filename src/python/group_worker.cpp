// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group_worker.hpp"

#include <unistd.h>

#include <future>
#include <utility>
#include <vector>

#include <adasum/core/error.hpp>
#include <adasum/detail/engine/call_signature.hpp>
#include <adasum/detail/engine/collective_setup.hpp>

namespace adasum::python {
namespace {

/// Who uses what is Python's. It outlives the interpreter, and threads that wait for other ranks outlive main().
class interpreter_use {
 public:
  /// @return whether the interpreter is still there, and stays until leave()
  bool enter() {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return false;
    ++users_;
    return true;
  }
  void leave() {
    {
      const std::lock_guard lock(mutex_);
      --users_;
    }
    changed_.notify_all();
  }
  void end() {
    std::unique_lock lock(mutex_);
    has_ended_ = true;
    changed_.wait(lock, [this] { return users_ == 0; });
  }
  bool has_ended() {
    const std::lock_guard lock(mutex_);
    return has_ended_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int users_ = 0;
  bool has_ended_ = false;
};

interpreter_use& interpreter() {
  static auto& only = *new interpreter_use;
  return only;
}

}  // namespace

group_worker::group_worker(c10::intrusive_ptr<::c10d::ProcessGroup> group, std::chrono::duration<double> timeout,
                           c10::intrusive_ptr<::c10d::ProcessGroup> for_devices)
    : state_(std::make_shared<state>()), process_(getpid()) {
  state_->comm = c10d_communicator(std::move(group), timeout, for_devices);
  state_->for_devices = std::move(for_devices);
  thread_ = std::thread([here = state_] { run(here); });
}

group_worker::~group_worker() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ends = true;
  }
  state_->changed.notify_all();
  if (is_this_thread())
    thread_.detach();
  else
    thread_.join();
}

void group_worker::connect(at::Device device, const char* call) {
  if (!state_->for_devices || device.is_cpu() || state_->connected == device) return;
  adasum::detail::collective_setup(call, host_comm(), false).run([&](auto& others) {
    if (state_->connected)
      throw bad_input({call, ": this process's tensors were on ", state_->connected->str(), ", and now one is on ",
                       device.str(), "; a process group connects one device of each process"});
    std::vector<at::Tensor> one{at::zeros({1}, at::TensorOptions().device(device))};
    adasum::detail::call_signature doing;
    doing.set(doing.activity, "connecting devices");
    others.meet(doing);
    state_->for_devices->allreduce(one)->wait();
    others.meet(doing);
  });
  state_->connected = device;
}

void group_worker::submit(std::function<void()> work, std::function<void()> complete) {
  if (process_ != getpid())
    throw error("adasum.torch: this process was forked from the one that made the State, whose thread is not here");
  if (interpreter().has_ended()) throw error("adasum.torch: the Python interpreter is shutting down");
  {
    const std::lock_guard lock(state_->mutex);
    state_->jobs.push_back({std::move(work), std::move(complete)});
  }
  state_->changed.notify_all();
}

void group_worker::carry_out(const std::function<void()>& work) {
  if (is_this_thread()) return work();
  const auto task =
      std::make_shared<std::packaged_task<void()>>(work);  // shared: its call outlasts the wait for its result
  auto done = task->get_future();
  submit([task] { (*task)(); }, {});
  done.get();
}

bool group_worker::is_abandoned() const { return process_ != getpid() || interpreter().has_ended(); }

void group_worker::abandon_all() { interpreter().end(); }

void group_worker::run(const std::shared_ptr<state>& here) {
  std::unique_lock lock(here->mutex);
  for (;;) {
    here->changed.wait(lock, [&] { return here->ends || !here->jobs.empty(); });
    if (here->jobs.empty()) return;
    auto one = std::move(here->jobs.front());
    here->jobs.pop_front();
    lock.unlock();
    one.work();
    if (one.complete) {
      if (!interpreter().enter()) {  // what is Python's is left to the end of the process
        new job(std::move(one));
        return;
      }
      one.complete();
      one = {};
      interpreter().leave();
    }
    lock.lock();
  }
}

}  // namespace adasum::python
