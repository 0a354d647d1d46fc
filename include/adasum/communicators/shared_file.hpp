// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../core/config.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <utility>

#if __has_include(<sys/mman.h>)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>
#endif

namespace adasum::detail {

/// A file in memory that processes of one node map, as POSIX's shm_open makes it. One process makes it under a name,
/// the others open it by that name, and then the name is removed. From then on its memory lasts until the last of them has
/// unmapped it or has ended, in whatever way. Calls return 0 or an errno, and allocate nothing: other ranks are waiting.
class shared_file {
 public:
  /// For the processes that are to open it.
  struct name {
    char path[64] = "";
  };

  /// Where it is made: on Linux, in memory. Elsewhere a mapped file of the disk is in memory for the most part, too.
  static const char* directory() {
#if __has_include(<sys/mman.h>)
    if (access("/dev/shm", F_OK) == 0) return "/dev/shm";
#endif
    return "/tmp";
  }

  shared_file() = default;
  shared_file(const shared_file&) = delete;
  shared_file& operator=(const shared_file&) = delete;

#if __has_include(<sys/mman.h>)
  ~shared_file() {
    close();
    if (base_) munmap(base_, size_);
  }

  /// A new one of so many bytes, all zero.
  int create(name& made, std::size_t bytes) {
    do {
      const auto now = std::chrono::system_clock::now().time_since_epoch().count();
      std::snprintf(made.path, sizeof made.path, "%s/adasum.%ld.%lld", directory(), static_cast<long>(getpid()),
                    static_cast<long long>(now));
      file_ = ::open(made.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    } while (file_ < 0 && errno == EEXIST);
    if (file_ < 0) return errno;
    if (!has_room(bytes)) {
      errno = ENOSPC;
      return failed_to_use(made);
    }
    return ftruncate(file_, static_cast<off_t>(bytes)) == 0 ? 0 : failed_to_use(made);
  }
  int open(const name& made) {
    file_ = ::open(made.path, O_RDWR | O_CLOEXEC);
    return file_ < 0 ? errno : 0;
  }
  /// Takes the name away; the file stays with those who have opened it.
  static void remove(const name& made) { unlink(made.path); }

  /// Takes memory for a part of it, near the processor that this process runs on: without this, where there is none
  /// left, a process would be killed when it first writes there.
  int take(std::size_t offset, std::size_t bytes) {
#if defined(_POSIX_ADVISORY_INFO) && _POSIX_ADVISORY_INFO > 0
    // A call that a signal interrupts gives back what it has taken: with short calls, timers cannot keep it from
    // finishing.
    constexpr std::size_t most = std::size_t{4} << 20;
    if (!has_room(bytes)) return ENOSPC;
    for (std::size_t done = 0; done < bytes;) {
      const auto some = std::min(most, bytes - done);
      const int code = posix_fallocate(file_, static_cast<off_t>(offset + done), static_cast<off_t>(some));
      if (code == 0)
        done += some;
      else if (code != EINTR)
        return code;
    }
    return 0;
#else
    return static_cast<void>(offset), static_cast<void>(bytes), 0;
#endif
  }
  /// Memory of this process alone if it has no file.
  /// @param keep_open  for hold() and is_held()
  int map(std::size_t bytes, bool keep_open = false) {
    void* const at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, file_ < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, file_, 0);
    if (at == MAP_FAILED) return errno;
    base_ = static_cast<std::byte*>(at);
    size_ = bytes;
    if (!keep_open) close();
    return 0;
  }
  std::byte* base() const { return base_; }

  /// Says to the others that this process, which is number `index` among them, is there: until it destroys this object, or
  /// ends, in whatever way. To be called after open(), or create().
  int hold(std::size_t index) {
    auto wanted = lock_of(index);
    return fcntl(file_, F_SETLK, &wanted) == 0 ? 0 : errno;
  }
  /// Whether that process holds it. Not to be asked about this process.
  bool is_held(std::size_t index) const {
    auto wanted = lock_of(index);
    return fcntl(file_, F_GETLK, &wanted) != 0 || wanted.l_type != F_UNLCK;
  }

 private:
  /// A byte of the file for each process. (Only POSIX's own locks end with their process even where another has
  /// inherited the file.)
  static struct flock lock_of(std::size_t index) {
    struct flock one{};
    one.l_type = F_WRLCK;
    one.l_whence = SEEK_SET;
    one.l_start = static_cast<off_t>(index);
    one.l_len = 1;
    return one;
  }
  void close() {
    if (file_ >= 0) ::close(std::exchange(file_, -1));
  }
  /// Asked first, because to take memory until there is none left takes it from everybody.
  bool has_room(std::size_t bytes) const {
    struct statvfs here;
    return fstatvfs(file_, &here) != 0 || bytes / here.f_frsize < here.f_bavail;
  }
  int failed_to_use(const name& made) {
    const int code = errno;
    remove(made);
    return code;
  }

  int file_ = -1;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
#else
  int create(name&, std::size_t) { return ENOSYS; }
  int open(const name&) { return ENOSYS; }
  static void remove(const name&) {}
  int take(std::size_t, std::size_t) { return ENOSYS; }
  int map(std::size_t, bool = false) { return ENOSYS; }
  int hold(std::size_t) { return ENOSYS; }
  bool is_held(std::size_t) const { return true; }
  std::byte* base() const { return nullptr; }
#endif
};

}  // namespace adasum::detail
