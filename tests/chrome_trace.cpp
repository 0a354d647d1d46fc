// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/adasum.hpp>
#include <adasum/chrome_trace.hpp>
#include <adasum/communicators/threads.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/ranks.hpp"
#include "support/refusal.hpp"

namespace test_of_chrome_trace {

using namespace adasum::test;

namespace {

std::mutex guard;
std::set<std::string> steps;
thread_local int depth = 0;
std::atomic<int> unbalanced = 0, set_up = 0;

constexpr adasum::tracer counting{[](const char* step, std::size_t) noexcept {
                                    ++depth;
                                    set_up += std::string_view(step) == "set up";
                                    const std::lock_guard lock(guard);
                                    steps.insert(step);
                                  },
                                  []() noexcept { unbalanced += --depth < 0; }};

/// @return how many ranges of each rank's thread have not ended
std::vector<int> reduce(int ranks) {
  return results_of(on_ranks(ranks, [](const adasum::thread_communicator& comm) {
    std::vector<float> gradient(1000, static_cast<float>(comm.rank() + 1));
    adasum::adasum_allreduce(adasum::serial_space(), comm, gradient, adasum::segments{400, 600});
    return depth;
  }));
}

}  // namespace

TEST_CASE("tracing: each step begins and ends, for who asks") {
  adasum::set_tracer(&counting);
  CHECK(reduce(3) == std::vector<int>(3));
  adasum::set_tracer(nullptr);
  CHECK(unbalanced == 0);
  for (const auto* const step : {"bring", "wait", "measure", "combine", "finish"}) CHECK(steps.contains(step));
  steps.clear();
  reduce(2);
  CHECK(steps.empty());
}

TEST_CASE("tracing: waiting for other ranks to make a plan") {
  adasum::set_tracer(&counting);
  on_ranks(2, [](const adasum::thread_communicator& comm) {
    return adasum::plan_allreduce<float>(adasum::serial_space(), comm, adasum::segments{400, 600}).length();
  });
  adasum::set_tracer(nullptr);
  CHECK(steps == std::set<std::string>{"set up", "wait"});
  steps.clear();
}

TEST_CASE("tracing: a kept plan is set up once") {
  set_up = 0;
  adasum::set_tracer(&counting);
  on_ranks(2, [](const adasum::thread_communicator& comm) {
    std::vector<float> gradient(1000, 1);
    adasum::adasum_allreduce(adasum::serial_space(), comm, gradient);
    return adasum::adasum_allreduce(adasum::serial_space(), comm, gradient).contributions();
  });
  adasum::set_tracer(nullptr);
  CHECK(set_up == 2);  // on each rank
  steps.clear();
}

TEST_CASE("tracing: Chrome's format") {
  const auto folder = std::filesystem::temp_directory_path() / ("adasum_trace." + std::to_string(getpid()));
  adasum::trace_to(folder);
  reduce(2);
  adasum::set_tracer(nullptr);
  int begun = 0, ended = 0, files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    ++files;
    std::ifstream in(file.path());
    std::string line;
    CHECK((std::getline(in, line) && line == "["));
    CHECK((std::getline(in, line) && line.starts_with("{\"ph\": \"M\", \"name\": \"process_name\"")));
    while (std::getline(in, line)) {
      CHECK((line.starts_with("{\"ph\": \"") && line.ends_with("},")));
      begun += line.find("\"ph\": \"B\"") != line.npos && line.find("\"args\": {\"stage\": ") != line.npos;
      ended += line.find("\"ph\": \"E\"") != line.npos;
    }
  }
  std::filesystem::remove_all(folder);
  CHECK(files == 1);
  CHECK(begun > 6);
  CHECK(begun == ended);
  check_refused([] { adasum::trace_to("/dev/null/traces"); }, "/dev/null/traces/adasum.", "Not a directory");
}

}  // namespace test_of_chrome_trace
