// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// A device whose memory the host cannot read, and whose streams run nothing late, but keep account of what they may rely on.
namespace emulated {

using stream_id = std::int64_t;

/// How far each stream had come, as far as a stream (an event, the host) knows.
using clock = std::map<stream_id, std::int64_t>;

inline void merge(clock& into, const clock& other) {
  for (const auto& [stream, time] : other) into[stream] = std::max(into[stream], time);
}

class device {
 public:
  static device& only() {
    static auto& one = *new device;  // tensors outlive main()
    return one;
  }

  // ── memory ──

  /// An address that nobody may use. What it stands for is elsewhere: see host_side().
  void* allocate(std::size_t bytes, stream_id stream) {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK_WITH(OutOfMemoryError, used_ + bytes <= limit_, "emulated device: out of memory: ", bytes,
                     " more bytes");
    // A caching allocator would give it what has been freed on this stream.
    merge(streams_[stream], of_host_);
    for (const auto& [other, time] : std::exchange(freed_[stream], {}))
      if (streams_[stream][other] < time)
        complain("memory of stream " + std::to_string(stream) + " is used again while stream " + std::to_string(other) +
                 " may use it");
    const auto size = (bytes + 4095) / 4096 * 4096 + 4096;
    auto* const address = map(size, PROT_NONE);
    blocks_[address] = {
        .end = address + bytes, .size = size, .bytes = bytes, .host = map(size, PROT_READ | PROT_WRITE), .of = stream};
    used_ += bytes;
    return address;
  }
  void free(void* at) {
    if (at == nullptr) return;
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(static_cast<char*>(at));
    const auto& one = found->second;
    for (const auto& [stream, time] : one.used)
      if (stream != one.of && !one.recorded.contains(stream)) merge(freed_[one.of], {{stream, time}});
    used_ -= one.bytes;
    munmap(found->first, one.size);
    munmap(one.host, one.size);
    blocks_.erase(found);
  }
  /// Where the host may read and write what lies at this address of the device.
  char* host_side(const void* at) {
    const std::lock_guard lock(mutex_);
    auto* const address = const_cast<char*>(static_cast<const char*>(at));
    const auto found = block_of(address);
    return found->second.host + (address - found->first);
  }
  /// The stream may use it even after it has been freed.
  void record(const void* at, stream_id stream) {
    const std::lock_guard lock(mutex_);
    if (at != nullptr) block_of(static_cast<const char*>(at))->second.recorded.insert(stream);
  }
  void set_limit(std::size_t bytes) { limit_ = bytes; }

  // ── streams ──

  static stream_id& current() {
    thread_local stream_id stream = 0;
    return stream;
  }
  stream_id new_stream() {
    const std::lock_guard lock(mutex_);
    return ++last_stream_;
  }
  /// What a stream knows by now, for an event.
  clock now(stream_id stream) {
    const std::lock_guard lock(mutex_);
    merge(streams_[stream], of_host_);
    return streams_[stream];
  }
  void wait(stream_id stream, const clock& moment) {
    const std::lock_guard lock(mutex_);
    merge(streams_[stream], moment);
  }
  /// The host has waited.
  void wait(const clock& moment) {
    const std::lock_guard lock(mutex_);
    merge(of_host_, moment);
  }

  void wait_for_all() {
    const std::lock_guard lock(mutex_);
    for (const auto& [stream, known] : streams_) merge(of_host_, known);
  }

  /// An operator on the current stream begins. Complains if it uses what another stream may be writing, or writes what another
  /// may be using.
  void begin(const std::string& name) {
    const std::lock_guard lock(mutex_);
    ++operators_[name];
    if (name == failing_) {
      failing_.clear();
      TORCH_CHECK(false, "emulated device: the operator ", name, " failed");
    }
    merge(streams_[current()], of_host_);
    ++streams_[current()][current()];
  }
  void use(const std::string& name, const void* at, bool writes) {
    const std::lock_guard lock(mutex_);
    if (at == nullptr) return;
    auto& one = block_of(static_cast<const char*>(at))->second;
    auto& known = streams_[current()];
    for (const auto& [stream, time] : writes ? one.used : one.written)
      if (known[stream] < time)
        complain(name + " on stream " + std::to_string(current()) + " does not wait for stream " +
                 std::to_string(stream));
    one.used[current()] = known[current()];
    if (writes) one.written = {{current(), known[current()]}};
  }

  // ── for tests ──

  std::vector<std::string> complaints() {
    const std::lock_guard lock(mutex_);
    return std::exchange(complaints_, {});
  }
  /// How often each has been started since this was last asked.
  std::map<std::string, int> operators() {
    const std::lock_guard lock(mutex_);
    return std::exchange(operators_, {});
  }
  /// The next operator of this name fails.
  void let_fail(const std::string& name) {
    const std::lock_guard lock(mutex_);
    failing_ = name;
  }

 private:
  struct block {
    char* end;
    std::size_t size, bytes;
    char* host;
    stream_id of;
    std::set<stream_id> recorded{};
    clock used{}, written{};
  };

  static char* map(std::size_t size, int access) {
    auto* const at = mmap(nullptr, size, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    return static_cast<char*>(at);
  }
  std::map<char*, block>::iterator block_of(const char* at) {
    auto found = blocks_.upper_bound(const_cast<char*>(at));
    TORCH_CHECK(found != blocks_.begin(), "emulated device: an address that is not the device's");
    --found;
    TORCH_CHECK(at <= found->second.end, "emulated device: an address that is not the device's");
    return found;
  }
  void complain(std::string what) { complaints_.push_back(std::move(what)); }

  std::mutex mutex_;
  std::map<char*, block> blocks_;
  std::map<stream_id, clock> streams_;
  std::map<stream_id, clock> freed_;  // of each stream: how far others may use memory that has been freed there
  clock of_host_;  // what any of its threads has waited for
  stream_id last_stream_ = 0;
  std::size_t used_ = 0, limit_ = SIZE_MAX / 2;
  std::map<std::string, int> operators_;
  std::string failing_;
  std::vector<std::string> complaints_;
};

}  // namespace emulated
