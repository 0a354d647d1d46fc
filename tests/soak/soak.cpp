// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     mpirun -n 4 soak SECONDS [--seed S] [--leak]
//
// Random reductions for so long: plans, plans in flight and in their own memory, single calls, buckets, parts of results,
// communicators that come and go, and bad input on one rank. Results are compared with adasum_tree and, bit by bit, among
// ranks. About once a second it lets go of all plans and communicators, and prints a line of comma-separated values: what the
// ranks then still hold of memory and of file descriptors. Fails if a result is wrong, or if the least that they hold in the
// last quarter of the time is more than in the second: by 0.3 MB of memory in use, by 1 MB of resident memory, or by one file
// descriptor.
// --leak: rank 0 loses some memory at each step, which must be noticed.

#include <malloc.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <adasum/adasum.hpp>
#include <adasum/mpi.hpp>

namespace {

const adasum::serial_space space;

using choices_type = adasum::options;
using plan_type = std::function<void(std::span<float>)>;

/// One gradient and how it is reduced: few enough of them that the plans which a communicator keeps come to an end.
struct shape {
  adasum::segments segs;
  std::size_t radix;
  bool halves;
  choices_type choices;
};

class soak {
 public:
  soak(std::uint64_t seed, bool leaks) : random_(seed), leaks_(leaks) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    for (int i = 0; i < 24; ++i) shapes_.push_back(some_shape(i));
    renew_communicator();
  }

  void step() {
    ++steps_;
    if (leaks_ && rank_ == 0) {
      lost_ = static_cast<char*>(std::malloc(1 << 14));
      std::fill_n(lost_, 1 << 14, 'x');
    }
    const auto kind = below(20);
    const auto& one = shapes_[below(shapes_.size())];
    if (kind < 5) return run_plan();
    if (kind < 8) return renew_plan(one);
    if (kind < 12)
      return reduce(one, [&](auto gradient, const auto& order) {
        adasum::adasum_allreduce(space, *comm_, gradient, one.segs, order, one.choices);
      });
    if (kind < 13)
      return reduce(one, [&](auto gradient, const auto& order) {
        auto plan = adasum::plan_allreduce<float>(space, *comm_, one.segs, order, one.choices);
        plan.start(gradient);
        while (!plan.test()) std::this_thread::yield();
        plan.wait();
      });
    if (kind < 14)
      return reduce(one, [&](auto gradient, const auto& order) {
        auto plan = adasum::plan_allreduce<float>(space, *comm_, one.segs, order, one.choices);
        std::ranges::copy(gradient, plan.buffer().begin());
        plan();
        std::ranges::copy(plan.buffer(), gradient.begin());
      });
    if (kind < 16)
      return reduce(one, [&](auto gradient, const auto&) {
        std::vector<adasum::segments> parameters;
        for (std::size_t i = 0; i < one.segs.size(); ++i)
          parameters.push_back(adasum::segments::whole(one.segs.length(i)));
        auto buckets = adasum::plan_bucketed<float>(space, *comm_, parameters, 4096, one.choices);
        for (std::size_t i = parameters.size(); i > 0; --i) {
          std::ranges::copy(gradient.subspan(one.segs.offset(i - 1), one.segs.length(i - 1)),
                            buckets.gradient(i - 1).begin());
          buckets.ready(i - 1);
        }
        buckets.wait();
        for (std::size_t i = 0; i < parameters.size(); ++i)
          std::ranges::copy(buckets.gradient(i), gradient.subspan(one.segs.offset(i)).begin());
      });
    if (kind < 18) return reduce_scatter(one);
    if (kind < 19) return refuse(one);
    renew_communicator();
  }

  std::size_t steps() const { return steps_; }

  /// Gives back all that steps have made. The next call is renew_communicator.
  void let_go() {
    plans_.assign(6, {});
    comm_.reset();
  }
  void renew_communicator() {
    let_go();
    comm_.emplace(MPI_COMM_WORLD);
  }

 private:
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }

  shape some_shape(int number) {
    std::vector<std::size_t> lengths(1 + below(number % 3 == 0 ? 60 : 4));
    for (auto& length : lengths) length = below(number % 8 == 7 ? 40000 : 600);
    choices_type choices;
    choices.check_agreement = below(2) == 0;
    choices.nonfinite = below(4) == 0 ? adasum::nonfinite_policy::exclude : adasum::nonfinite_policy::propagate;
    return {adasum::segments(lengths), 2 + below(3), below(2) == 0, choices};
  }

  std::vector<float> gradient_of(int rank, const shape& one, std::uint64_t seed) const {
    std::minstd_rand numbers(static_cast<std::uint32_t>(seed + 31 * static_cast<std::uint64_t>(rank)));
    std::vector<float> gradient(one.segs.total());
    for (float& value : gradient) value = static_cast<float>(numbers() % 2001) / 1000 - 1;
    return gradient;
  }

  template <class Reduce>
  void with_schedule(const shape& one, const Reduce& run) {
    if (one.radix == 4) return run(adasum::schedules::automatic{});
    if (one.halves) return run(adasum::schedules::recursive_halving{.radix = one.radix});
    run(adasum::schedules::recursive_doubling{.radix = one.radix});
  }

  /// @param call  call(gradient, schedule)
  template <class Call>
  void reduce(const shape& one, const Call& call) {
    const auto seed = random_();
    auto gradient = gradient_of(rank_, one, seed);
    with_schedule(one, [&](const auto& order) { call(std::span(gradient), order); });
    check(one, seed, gradient, {0, gradient.size()});
  }

  void reduce_scatter(const shape& one) {
    const auto seed = random_();
    auto gradient = gradient_of(rank_, one, seed);
    adasum::index_range mine;
    with_schedule(one, [&](const auto& order) {
      auto plan = adasum::plan_reduce_scatter<float>(space, *comm_, one.segs, order, one.choices);
      plan(gradient);
      mine = plan.part();
    });
    check(one, seed, gradient, mine, false);
  }

  void renew_plan(const shape& one) {
    const auto place = below(plans_.size());
    with_schedule(one, [&](const auto& order) {
      using made_type = decltype(adasum::plan_allreduce<float>(space, *comm_, one.segs, order, one.choices));
      plans_[place] = {};
      const auto plan =
          std::make_shared<made_type>(adasum::plan_allreduce<float>(space, *comm_, one.segs, order, one.choices));
      plans_[place] = {[plan](std::span<float> gradient) { (*plan)(gradient); }, &one};
    });
  }
  void run_plan() {
    const auto& kept = plans_[below(plans_.size())];
    if (kept.run) reduce(*kept.of, [&](auto gradient, const auto&) { kept.run(gradient); });
  }

  /// Bad input on one rank: all throw.
  void refuse(const shape& one) {
    const auto culprit = static_cast<int>(below(static_cast<std::size_t>(size_)));
    auto gradient = gradient_of(rank_, one, 1);
    if (rank_ == culprit) gradient.push_back(0);
    try {
      adasum::adasum_allreduce(space, *comm_, gradient, one.segs, one.choices);
    } catch (const adasum::error&) {
      return;
    }
    throw std::runtime_error("a gradient that is too long was taken");
  }

  void check(const shape& one, std::uint64_t seed, std::span<const float> result, adasum::index_range part,
             bool all_have_it = true) const {
    std::vector<std::vector<float>> all;
    for (int r = 0; r < size_; ++r) all.push_back(gradient_of(r, one, seed));
    std::vector<std::span<const float>> inputs(all.begin(), all.end());
    std::vector<float> expected(result.size());
    adasum::adasum_tree(space, inputs, expected, one.segs);
    for (auto i = part.begin; i < part.end; ++i)
      if (!(std::abs(result[i] - expected[i]) <= 2e-4f))
        throw std::runtime_error("element " + std::to_string(i) + " of " + std::to_string(result.size()) + " is " +
                                 std::to_string(result[i]) + " in place of " + std::to_string(expected[i]));
    if (!all_have_it) return;
    std::uint64_t sum = 0, least = 0, most = 0;
    for (const float value : result) sum = sum * 1099511628211u + std::hash<float>()(value);
    MPI_Allreduce(&sum, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&sum, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (least != most) throw std::runtime_error("the ranks have different bits");
  }

  std::mt19937_64 random_;
  bool leaks_;
  char* volatile lost_ = nullptr;  // volatile: or clang finds that nobody reads that memory, and asks for none
  int rank_ = 0, size_ = 0;
  std::size_t steps_ = 0;
  std::vector<shape> shapes_;
  struct kept_plan {
    plan_type run;
    const shape* of = nullptr;
  };
  std::optional<adasum::mpi_communicator> comm_;
  std::vector<kept_plan> plans_;  // destroyed before the communicator
};

/// What the ranks hold: the most of any of them.
struct sample {
  double seconds = 0;
  double steps = 0;
  double heap = 0;      // MB in use, by malloc
  double resident = 0;  // MB
  double descriptors = 0;

  static sample take(double seconds, std::size_t steps) {
    malloc_trim(0);  // or what is resident would depend on where the last plans happened to lie
    std::size_t pages = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident;
    const auto heap = mallinfo2();
    const std::filesystem::directory_iterator open("/proc/self/fd");
    double mine[] = {static_cast<double>(heap.uordblks + heap.hblkhd) / 1e6,
                     static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6,
                     static_cast<double>(std::distance(begin(open), end(open)))};
    double most[3];
    MPI_Allreduce(mine, most, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return {seconds, static_cast<double>(steps), most[0], most[1], most[2]};
  }
};

/// The least of a figure in one quarter of the samples: what is held in any case.
double least_in_quarter(const std::vector<sample>& all, std::size_t quarter, double sample::* figure) {
  double least = std::numeric_limits<double>::infinity();
  for (auto i = all.size() * quarter / 4; i < all.size() * (quarter + 1) / 4; ++i)
    least = std::min(least, all[i].*figure);
  return least;
}

bool is_flat(const std::vector<sample>& all) {
  bool flat = true;
  // Even in seconds the least moves by no more than 0.02 MB of either, but for MPICH, which takes 0.15 MB more at some time.
  const auto require = [&](const char* name, double sample::* figure, double more) {
    const double before = least_in_quarter(all, 1, figure), now = least_in_quarter(all, 3, figure);
    if (now <= before + more) return;
    std::fprintf(stderr, "soak: %s has grown from %.2f to %.2f\n", name, before, now);
    flat = false;
  };
  require("memory in use, in MB,", &sample::heap, 0.3);
  require("resident memory, in MB,", &sample::resident, 1);
  require("the number of file descriptors", &sample::descriptors, 0);
  return flat;
}

int run(double seconds, std::uint64_t seed, bool leaks) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  soak work(seed, leaks);
  std::vector<sample> samples;
  if (rank == 0) std::printf("seconds,reductions,heap_mb,resident_mb,descriptors\n");
  const double start = MPI_Wtime(), between = std::min(1.0, seconds / 40);
  samples.reserve(static_cast<std::size_t>(seconds / between) + 2);  // or this would be what grows
  for (double next = 0, now = 0; now < seconds;) {
    for (int i = 0; i < 20; ++i) work.step();
    now = MPI_Wtime() - start;
    MPI_Bcast(&now, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (now < next) continue;
    next += between;
    work.let_go();
    samples.push_back(sample::take(now, work.steps()));
    work.renew_communicator();
    const auto& last = samples.back();
    if (rank == 0)
      std::printf("%.1f,%.0f,%.3f,%.3f,%.0f\n", last.seconds, last.steps, last.heap, last.resident, last.descriptors);
  }
  return rank != 0 || is_flat(samples) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double seconds = 0;
  std::uint64_t seed = 1;
  bool leaks = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--leak")
      leaks = true;
    else if (word == "--seed" && i + 1 < argc)
      seed = std::strtoull(argv[++i], nullptr, 10);
    else
      seconds = std::strtod(argv[i], nullptr);
  }
  int status = 0;
  try {
    status = run(seconds, seed, leaks);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "soak: %s\n", problem.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
