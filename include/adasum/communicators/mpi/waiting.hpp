// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../../core/config.hpp"

#include "mpi_h.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <thread>

#include "../../core/communicator_state.hpp"
#include "../../core/error.hpp"
#include "../../core/waiting.hpp"
#include "error.hpp"

namespace adasum::detail::mpi {

/// @return whether the request has ended, well or not
inline bool has_ended(MPI_Request& request, int& code, MPI_Status* status) {
  int flag = 0;
  code = MPI_Test(&request, &flag, status);
  return code != MPI_SUCCESS || flag;
}

/// How long a rank waits for messages of one communicator, and whether it has given up. MPI cannot take back what has been
/// posted: a message that was given up may still arrive, and one that was sent may still be read. So whoever gives up
/// leaves the memory of its messages to MPI for good, and sends and receives no more on that communicator.
class waiting {
 public:
  /// @param state  of the communicator: its timeout, and whether this rank has given up. It must outlive this object
  waiting(int rank, std::span<const int> node_of_rank, communicator_state& state)
      : rank_(rank), node_of_rank_(node_of_rank), state_(state) {}

  std::size_t size() const { return node_of_rank_.size(); }

  /// Whether a wait may end before what is waited for has come.
  bool is_limited() const { return detail::is_limited((state_.timeout)()) || can_be_interrupted(); }

  void require_not_given_up() const {
    if (state_.gave_up())
      throw timeout_error({name(), " cannot use this communicator any more: it has waited in vain",
                           late_ < 0 ? "" : " for " + text(late_), " before"},
                          late_);
  }

  /// Calls test(), which returns whether what is waited for has come, until then or until the time is over or the
  /// program interrupts it (core/waiting.hpp).
  /// @return whether it has come
  template <class Test>
  bool until(Test&& test) const {
    waiting_time waited;
    interruption stop;
    bool has_come = false, is_late = false;
    while (!(has_come = test()) && !is_late) {
      if (spin_.again()) continue;
      std::this_thread::yield();
      was_interrupted_ = stop.is_requested();
      is_late = was_interrupted_ || waited.exceeds((state_.timeout)());
    }
    spin_.ended();
    return has_come;
  }

  /// @param late  the rank that did not come; negative where it is not known
  void give_up(int late) {
    state_.give_up();
    late_ = late;
  }
  /// After give_up().
  [[noreturn]] void throw_error() const {
    throw timeout_error({name(), ": ", late_ < 0 ? "another rank" : text(late_),
                         was_interrupted_ ? " had not come when the wait was interrupted"
                                          : " has not come within " + text_of((state_.timeout)())},
                        late_);
  }

  /// Waits for a collective call that was started. What it works on must stay if that fails.
  void await(const char* call, MPI_Request& request) {
    if (!is_limited()) return check(call, MPI_Wait(&request, MPI_STATUS_IGNORE));
    int code = MPI_SUCCESS;
    if (until([&] { return has_ended(request, code, MPI_STATUS_IGNORE); })) return check(call, code);
    give_up(-1);
    throw_error();
  }

  int number = 0;  ///< for such calls: it stays as long as this object

 private:
  std::string name() const { return joined({"adasum::mpi_communicator: rank ", rank_}); }
  std::string text(int rank) const {
    const auto node = node_of_rank_[static_cast<std::size_t>(rank)];
    return joined({"rank ", rank, " (on the node of rank ", node, ")"});
  }

  int rank_;
  std::span<const int> node_of_rank_;
  communicator_state& state_;
  mutable spinning spin_{2000};  // tests of a request take longer than looks at memory
  mutable bool was_interrupted_ = false;
  int late_ = -1;
};

}  // namespace adasum::detail::mpi
