// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace adasum::test::model {

/// What one rank does: a line for each call of shared_barriers (recorded_access.hpp), and before it one for each thing
/// that the rank has read or written since the last call. How often it looks while it waits is left out: that depends on
/// the turns of the ranks.
class recording {
 public:
  /// What a call of shared_barriers does itself is not recorded: it is the same code in the model and in the library.
  class inside {
   public:
    explicit inside(recording& one) : one_(one), was_(std::exchange(one.is_inside_, true)) {}
    inside(const inside&) = delete;
    inside& operator=(const inside&) = delete;
    ~inside() { one_.is_inside_ = was_; }

   private:
    recording& one_;
    bool was_;
  };

  /// @param cuts  where the slices of a gradient begin, in bytes, and where the last one ends
  recording(std::size_t self, std::vector<std::size_t> cuts) : self_(self), cuts_(std::move(cuts)) {}

  /// Of the rank that this thread is; null in a thread that is none.
  static thread_local recording* current;

  // ── calls ──

  void call(const std::string& what);
  /// One that may be made again and again.
  void call_once(const std::string& what);
  void begin_run();
  void drop_plan();
  /// From here on, its gradient is the caller's.
  void end_run() { is_in_run_ = false; }

  // ── what lies in memory ──

  void gradient_is_at(std::size_t rank, const void* begin);
  void copy_is_at(std::size_t rank, const void* begin);
  void access(const void* at, std::size_t bytes, bool writes);
  /// Of what is not cut into slices.
  void access(const std::string& what, bool writes);

  // ── a rank that gives up waiting ──

  bool is_impatient = false;     ///< whichever wait comes next
  std::size_t impatient_at = 0;  ///< the wait of this number, from now on; 0: none
  bool gives_up() { return is_impatient || (impatient_at > 0 && --impatient_at == 0); }

  /// All that it has done: before its runs, in each of them, and after them.
  const std::vector<std::vector<std::string>>& runs() const { return runs_; }

 private:
  void add(const std::string& line) { runs_.back().push_back(line); }
  void note(const std::string& what, bool writes);
  void flush();

  std::size_t self_;
  std::vector<std::size_t> cuts_;
  std::vector<std::vector<std::string>> runs_{1};
  std::map<std::size_t, const std::byte*> gradients_, copies_;  // by rank
  std::map<std::string, bool> accesses_;                        // since the last call; whether it was written
  bool is_inside_ = false, is_in_run_ = false;
};

}  // namespace adasum::test::model
