// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

/// What recorder.cpp keeps of a process's use of MPI.
namespace mpi_usage {

/// Not operator new, which some tests let fail.
template <class T>
struct from_malloc {
  using value_type = T;
  from_malloc() = default;
  template <class U>
  from_malloc(const from_malloc<U>&) {}
  T* allocate(std::size_t count) {
    if (void* const memory = std::malloc(count * sizeof(T))) return static_cast<T*>(memory);
    std::abort();
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }
  friend bool operator==(from_malloc, from_malloc) { return true; }
};
template <class Key, class Value>
using map_of = std::map<Key, Value, std::less<Key>, from_malloc<std::pair<const Key, Value>>>;

struct span_of_bytes {
  const unsigned char* data = nullptr;
  std::size_t size = 0;

  bool overlaps(const span_of_bytes& other) const {
    const std::less<const unsigned char*> before;
    return size > 0 && other.size > 0 && before(data, other.data + other.size) && before(other.data, data + size);
  }
  std::uint64_t hash() const {  // FNV-1a
    std::uint64_t value = 14695981039346656037u;
    for (std::size_t i = 0; i < size; ++i) value = (value ^ data[i]) * 1099511628211u;
    return value;
  }
};

/// Memory that MPI receives into instead of the caller's, which holds a pattern until the request is completed: whoever reads
/// it before that finds no message, and what is written to it is seen. (The pattern is NaN in floats, and -1 in integers.)
class stand_in {
 public:
  stand_in() = default;
  /// What MPI does not write stays as it is, and it may read in place.
  explicit stand_in(span_of_bytes buffer) : buffer_(buffer) {
    if (buffer.size == 0) return;
    memory_ = from_malloc<unsigned char>().allocate(buffer.size);
    std::memcpy(memory_, buffer.data, buffer.size);
  }

  /// Where MPI is to receive. @param original  the caller's buffer, which stays where it is empty
  void* address(void* original) const { return memory_ ? memory_ : original; }
  span_of_bytes buffer() const { return buffer_; }

  void begin() {
    if (memory_) std::memset(writable(), pattern, buffer_.size);
  }
  /// @return whether the caller's buffer was left alone
  bool end() {
    if (!memory_) return true;
    const bool alone = std::all_of(buffer_.data, buffer_.data + buffer_.size, [](auto byte) { return byte == pattern; });
    std::memcpy(writable(), memory_, buffer_.size);
    return alone;
  }
  void release() { std::free(std::exchange(memory_, nullptr)); }

 private:
  static constexpr unsigned char pattern = 0xff;
  unsigned char* writable() const { return const_cast<unsigned char*>(buffer_.data); }

  span_of_bytes buffer_;
  unsigned char* memory_ = nullptr;
};

struct request_in_flight {
  const char* call = "";
  span_of_bytes sent;
  stand_in received;
  std::uint64_t hash = 0;  // of what is sent
};

class recorder {
 public:
  static recorder& get() {
    static recorder* const only = new (std::malloc(sizeof(recorder))) recorder;  // it outlives all destructors
    return *only;
  }

  void fault(const char* call, const char* what) {
    const std::lock_guard one_at_a_time(mutex_);
    say(call, what);
  }
  void began(int level) {
    thread_level_ = level;
    main_thread_ = std::this_thread::get_id();
    if (int found = 0, *limit = nullptr;
        PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found) == MPI_SUCCESS && found)
      largest_tag_ = *limit;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  }

  // ── one call ──

  void enter(const char* call) {
    if (ended_) {
      std::fprintf(stderr, "mpi_usage: rank %d: %s: after MPI_Finalize\n", rank_, call);
      std::_Exit(1);
    }
    if (in_calls_.fetch_add(1) > 0 && thread_level_ < MPI_THREAD_MULTIPLE)
      fault(call, "two threads are in MPI at once, and the thread level is below MPI_THREAD_MULTIPLE");
    if (thread_level_ < MPI_THREAD_SERIALIZED && main_thread_ != std::thread::id() &&
        std::this_thread::get_id() != main_thread_)
      fault(call, "not from the main thread, and the thread level is below MPI_THREAD_SERIALIZED");
  }
  void leave() { in_calls_.fetch_sub(1); }

  // ── messages ──

  void check_tag(const char* call, int tag, bool receives) {
    if ((tag < 0 && !(receives && tag == MPI_ANY_TAG)) || tag > largest_tag_)
      fault(call, "a tag that MPI does not allow");
  }
  void posted(MPI_Request request, request_in_flight one) {
    const std::lock_guard one_at_a_time(mutex_);
    ++requests_;
    one.hash = one.sent.hash();
    const auto into = one.received.buffer();
    if (into.overlaps(one.sent)) say(one.call, "it receives into what it sends");
    for (const auto& [handle, other] : in_flight_)
      if (into.overlaps(other.received.buffer()) || into.overlaps(other.sent) ||
          one.sent.overlaps(other.received.buffer()))
        say(one.call, "its buffer overlaps that of another message in flight");
    one.received.begin();
    in_flight_[request] = one;
  }
  /// @param code  what MPI has said
  void completed(MPI_Request request, int code) {
    if (request == MPI_REQUEST_NULL) return;
    const std::lock_guard one_at_a_time(mutex_);
    const auto found = in_flight_.find(request);
    if (found == in_flight_.end()) return;  // of another call than those below
    if (found->second.sent.hash() != found->second.hash)
      say(found->second.call, "the send buffer changed while its message was in flight");
    if (!found->second.received.end())
      say(found->second.call, "the receive buffer changed while its message was in flight");
    if (code == MPI_SUCCESS) found->second.received.release();  // else of several requests, some may go on
    int kind = MPI_SUCCESS;
    if (code != MPI_SUCCESS && PMPI_Error_class(code, &kind) == MPI_SUCCESS && kind == MPI_ERR_TRUNCATE &&
        !is_allowed("truncation"))
      say(found->second.call, "the message is longer than the receive buffer");
    in_flight_.erase(found);
  }
  void freed_while_active(MPI_Request request) {
    const std::lock_guard one_at_a_time(mutex_);
    if (in_flight_.erase(request) > 0) say("MPI_Request_free", "the request is active");
  }

  // ── what is made and freed ──

  void made(MPI_Comm comm, const char* call) {
    const std::lock_guard one_at_a_time(mutex_);
    if (comm == MPI_COMM_NULL) return;
    ++communicators_;
    comms_[comm] = call;
  }
  void freed(MPI_Comm comm) {
    int waiting = 0;
    MPI_Status status;
    if (PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &waiting, &status) == MPI_SUCCESS && waiting)
      fault("MPI_Comm_free", "a message was sent on this communicator, and not received");
    const std::lock_guard one_at_a_time(mutex_);
    comms_.erase(comm);
  }
  void count_error_handlers(int more) { error_handlers_ += more; }
  void count_keys(int more) { keys_ += more; }

  /// @return whether nothing was wrong
  bool end() {
    const std::lock_guard one_at_a_time(mutex_);
    ended_ = true;
    for (const auto& [handle, one] : in_flight_) say(one.call, "its request was never completed");
    for (const auto& [handle, call] : comms_) say(call, "its communicator was never freed");
    if (error_handlers_ > 0) say("MPI_Comm_get_errhandler", "an error handler was never freed");
    if (keys_ > 0 && !is_allowed("keys")) say("MPI_Comm_create_keyval", "a key was never freed");
    if (faults_ == 0)
      std::fprintf(stderr, "mpi_usage: rank %d: %zu requests, %zu communicators, no fault\n", rank_, requests_,
                   communicators_);
    return faults_ == 0;
  }

 private:
  recorder() = default;

  static bool is_allowed(std::string_view fault) {
    const char* const allowed = std::getenv("ADASUM_MPI_USAGE");
    return allowed && std::string_view(allowed).find(fault) != std::string_view::npos;
  }
  void say(const char* call, const char* what) {
    constexpr int most = 20;
    if (++faults_ <= most) std::fprintf(stderr, "mpi_usage: rank %d: %s: %s\n", rank_, call, what);
  }

  std::mutex mutex_;
  int rank_ = 0, thread_level_ = MPI_THREAD_SINGLE, largest_tag_ = 32767, faults_ = 0;
  std::thread::id main_thread_;
  std::atomic<int> in_calls_ = 0, error_handlers_ = 0, keys_ = 0;
  std::atomic<bool> ended_ = false;
  std::size_t requests_ = 0, communicators_ = 0;
  map_of<MPI_Request, request_in_flight> in_flight_;
  map_of<MPI_Comm, const char*> comms_;
};

/// A call that the thread level concerns. Those that MPI makes from within one, by the caller's functions, belong to it.
class watched {
 public:
  explicit watched(const char* call) {
    if (depth_++ == 0) recorder::get().enter(call);
  }
  watched(const watched&) = delete;
  watched& operator=(const watched&) = delete;
  ~watched() {
    if (--depth_ == 0) recorder::get().leave();
  }

 private:
  inline static thread_local int depth_ = 0;
};

}  // namespace mpi_usage
