// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include <memory>

namespace adasum::detail::any {

/// What communicators are told of the memory of messages: it is that of the host.
struct host {};

/// An exchange in flight on a communicator of any type. It keeps the other's object, and with it its memory.
class pending {
 public:
  bool test() { return !held_ || held_->test(); }
  void wait() {
    if (held_) held_->wait();
  }

  /// That of a communicator, which is always the same one.
  template <class Comm>
  typename Comm::pending& of() {
    if (!held_) held_ = std::make_unique<holder<typename Comm::pending>>();
    return static_cast<holder<typename Comm::pending>&>(*held_).held;
  }

 private:
  struct methods {
    virtual ~methods() = default;
    virtual bool test() = 0;
    virtual void wait() = 0;
  };
  template <class Pending>
  struct holder final : methods {
    bool test() override { return held.test(); }
    void wait() override { held.wait(); }
    Pending held;
  };
  std::unique_ptr<methods> held_;
};

}  // namespace adasum::detail::any
