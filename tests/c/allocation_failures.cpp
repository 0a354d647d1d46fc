// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory that is short on one rank of a program that uses the C library: whichever allocation of a call fails there, no rank
// waits for ever, ranks that succeed have the result, and the communicator works afterwards.
// On communicators that the library has met: before that, a rank that has no memory to make its own leaves the others waiting
// in MPI_Comm_dup, where MPI offers no way to tell them.
#include <adasum/adasum.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "../support/allocations.hpp"

namespace {

using adasum::test::failing_allocations;
using adasum::test::without_failures;

constexpr std::size_t count = 33;
constexpr std::size_t lengths[] = {9, 0, 24};

int rank = 0, size = 0, checks = 0;

/// The first failure ends the program: after it, ranks may wait for each other for ever.
void check(bool holds, const std::string& what) {
  ++checks;
  if (holds) return;
  std::fprintf(stderr, "rank %d: %s\n  (last error: %s)\n", rank, what.c_str(), adasum_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// A communicator of MPI's and a plan on it, both of which work.
class tested {
 public:
  explicit tested(const char* options) : options_(options), data_(count) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    // A rank that waits longer than this has not been told.
    check(adasum_set_timeout(comm_, 20) == ADASUM_SUCCESS, "a timeout can be set");
    check(adasum_plan_create(comm_, count, ADASUM_FLOAT, lengths, 3, "sum", options, &plan_) == ADASUM_SUCCESS,
          "a plan can be made");
  }
  tested(const tested&) = delete;
  tested& operator=(const tested&) = delete;
  ~tested() {
    check(adasum_plan_free(&plan_) == ADASUM_SUCCESS, "a plan can be freed");
    MPI_Comm_free(&comm_);
  }

  MPI_Comm comm() const { return comm_; }
  const char* options() const { return options_; }
  adasum_plan plan() const { return plan_; }
  float* data() { return data_.data(); }

  void fill() { data_.assign(count, static_cast<float>(1 + rank)); }
  bool holds_sum() const { return data_ == std::vector<float>(count, static_cast<float>(size * (size + 1) / 2)); }

 private:
  const char* options_;
  std::vector<float> data_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  adasum_plan plan_ = ADASUM_NULL;
};

/// How a call ends where no memory is short: with the sum in the data and a report; without one of them; with an error.
enum class usual_end { sum, success, error };

/// The allocation that fails next. A call's first ones are the C library's own, and all of them are tried; the others are
/// the C++ library's, which has tests of them.
std::size_t next_allocation(std::size_t n) { return n < 24 ? n + 1 : n + 7; }

/// call(tested, report) with the n'th allocation of one rank failing, alone or with all after it, for one n after another.
template <class Call>
void check_every_allocation(const std::string& name, usual_end end, const Call& call) {
  const bool reduces = end == usual_end::sum;
  for (const char* const options : {"check_agreement=yes", "check_agreement=no"})
    for (const auto& [in_a_row, culprit] :
         {std::pair{std::size_t{1}, size - 1}, std::pair{failing_allocations::all, 0}}) {
      int ran_out = 1;
      for (std::size_t n = 0; ran_out; n = next_allocation(n)) {
        tested here(options);
        here.fill();
        adasum_report report = ADASUM_NULL;
        int error = ADASUM_SUCCESS;
        ran_out = 0;
        if (rank == culprit) {
          const failing_allocations failing(n, in_a_row);
          error = call(here, &report);
          ran_out = failing.any();
        } else {
          error = call(here, &report);
        }
        const auto where = name + ", " + options + ", allocation " + std::to_string(n) +
                           (in_a_row > 1 ? " and all after it, of rank " : " of rank ") + std::to_string(culprit) +
                           ": " + adasum_error_name(error);
        check(error != ADASUM_TIMEOUT_ERROR, where);
        check((report.id != 0) == (reduces && error == ADASUM_SUCCESS), where + ", and the report");
        if (error == ADASUM_SUCCESS && reduces) check(here.holds_sum(), where + ", but the result is wrong");
        if (end == usual_end::error) check(error != ADASUM_SUCCESS, where);
        if (end != usual_end::error && rank == culprit && !ran_out)
          check(error == ADASUM_SUCCESS, where + ", where memory was not short");
        MPI_Bcast(&ran_out, 1, MPI_INT, culprit, MPI_COMM_WORLD);
        if (report.id != 0) check(adasum_report_free(&report) == ADASUM_SUCCESS, "a report can be freed");

        here.fill();
        const int next =
            adasum_allreduce(here.comm(), here.data(), count, ADASUM_FLOAT, nullptr, 0, "sum", options, nullptr);
        check(next == ADASUM_SUCCESS && here.holds_sum(), "the next call after " + where);
        here.fill();
        const int again = adasum_plan_run(here.plan(), here.data(), count, ADASUM_FLOAT, nullptr);
        check(again == ADASUM_SUCCESS && here.holds_sum(), "the next run after " + where);
      }
    }
}

void check_all() {
  check_every_allocation("adasum_allreduce", usual_end::sum, [](tested& on, adasum_report* report) {
    return adasum_allreduce(on.comm(), on.data(), count, ADASUM_FLOAT, lengths, 3, "sum", on.options(), report);
  });
  check_every_allocation("adasum_plan_create", usual_end::success, [](tested& on, adasum_report*) {
    adasum_plan made = ADASUM_NULL;
    const int error = adasum_plan_create(on.comm(), count, ADASUM_FLOAT, lengths, 3, "sum", on.options(), &made);
    return without_failures([&] {
      check((made.id != 0) == (error == ADASUM_SUCCESS), "a plan is made where there is no error");
      if (made.id != 0) check(adasum_plan_free(&made) == ADASUM_SUCCESS, "it can be freed");
      return error;
    });
  });
  check_every_allocation("adasum_plan_run", usual_end::sum, [](tested& on, adasum_report* report) {
    return adasum_plan_run(on.plan(), on.data(), count, ADASUM_FLOAT, report);
  });
  check_every_allocation("adasum_plan_run with another type", usual_end::error, [](tested& on, adasum_report* report) {
    return adasum_plan_run(on.plan(), on.data(), count, rank == 0 ? ADASUM_DOUBLE : ADASUM_FLOAT, report);
  });
  const auto start_and_wait = [](tested& on, int type, adasum_report* report) {
    const int error = adasum_plan_start(on.plan(), on.data(), count, type);
    const int at_end = adasum_plan_wait(on.plan(), report);
    return error == ADASUM_SUCCESS ? at_end : error;
  };
  check_every_allocation("adasum_plan_start with another type", usual_end::error,
                         [&](tested& on, adasum_report* report) {
                           return start_and_wait(on, rank == 0 ? ADASUM_DOUBLE : ADASUM_FLOAT, report);
                         });
  check_every_allocation("adasum_plan_start, adasum_plan_wait", usual_end::sum,
                         [&](tested& on, adasum_report* report) { return start_and_wait(on, ADASUM_FLOAT, report); });
  check_every_allocation("adasum_plan_buffer", usual_end::success, [](tested& on, adasum_report*) {
    void* own = nullptr;
    return adasum_plan_buffer(on.plan(), &own);
  });
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_all();
  if (rank == 0) std::printf("%d checks on each rank\n", checks);
  MPI_Finalize();
  return checks > 0 ? 0 : 1;
}
