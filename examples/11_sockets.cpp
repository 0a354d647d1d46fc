// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A communicator of one's own. The ranks are processes, and every two of them are connected by a socket.
//     ./11_sockets 5      # five ranks
#include <adasum/adasum.hpp>
#include <adasum/testing.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

/// Messages over stream sockets. A stream does not keep the bounds of messages, so a word in front of each one says its size:
/// the receiver needs it to tell a withheld message, which is empty, from the one that it expects.
class socket_communicator {
 public:
  /// @param sockets  to each rank; the one at this rank's own place is not used
  socket_communicator(int rank, std::vector<int> sockets) : shared_(new contents{rank, std::move(sockets)}) {}

  int rank() const { return shared_->rank; }
  int size() const { return static_cast<int>(shared_->sockets.size()); }

  /// For memory of the host.
  template <class Space>
  void exchange(const Space&, std::span<const adasum::outgoing> out, std::span<const adasum::incoming> in) const {
    // All that may run out of memory comes before the first byte is sent.
    std::vector<peer> peers(shared_->sockets.size());
    for (const auto& one : out)
      peer_of(peers, one).sent.push_back({one.withheld ? std::span<const std::byte>{} : one.bytes});
    for (const auto& one : in) peer_of(peers, one).received.push_back({one.bytes});
    std::vector<pollfd> ready(peers.size());

    // All messages move together, as far as the sockets let them. Those of one peer follow each other.
    while (wait_until_ready(peers, ready))
      for (std::size_t p = 0; p < peers.size(); ++p) {
        if (ready[p].revents == 0) continue;
        if (peers[p].sends()) send_some(ready[p].fd, peers[p]);
        if (peers[p].receives()) receive_some(ready[p].fd, peers[p]);
      }
    for (std::size_t p = 0; p < peers.size(); ++p)
      if (peers[p].is_wrong)
        throw adasum::communication_error("a message of rank " + std::to_string(p) +
                                          " does not have the expected size");
  }

  /// By which the library refuses a call while a plan is in flight, and finds the plan of a call that is made again.
  adasum::communicator_state& state() const { return shared_->state; }

 private:
  struct contents {
    int rank;
    std::vector<int> sockets;
    adasum::communicator_state state{};
  };
  using word = std::uint64_t;
  template <class Byte>
  struct message {
    std::span<Byte> bytes;
    word size = bytes.size();  // as sent, or as the sender says
    std::size_t done = 0;      // of the word and the bytes
  };
  /// The messages to and from one rank.
  struct peer {
    std::vector<message<const std::byte>> sent;
    std::vector<message<std::byte>> received;
    std::size_t next_sent = 0, next_received = 0;
    bool is_wrong = false;

    bool sends() const { return next_sent < sent.size(); }
    bool receives() const { return next_received < received.size(); }
  };

  template <class Message>
  static peer& peer_of(std::vector<peer>& peers, const Message& one) {
    return peers[static_cast<std::size_t>(one.peer)];
  }

  /// Returns false if all messages are through.
  bool wait_until_ready(const std::vector<peer>& peers, std::vector<pollfd>& ready) const {
    bool more = false;
    for (std::size_t p = 0; p < peers.size(); ++p) {
      const int events = (peers[p].sends() ? POLLOUT : 0) | (peers[p].receives() ? POLLIN : 0);
      ready[p] = {events == 0 ? -1 : shared_->sockets[p], static_cast<short>(events), 0};  // poll() leaves -1 out
      more = more || events != 0;
    }
    if (more && poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR)
      throw adasum::communication_error(std::string("poll: ") + std::generic_category().message(errno));
    return more;
  }

  static void send_some(int socket, peer& to) {
    auto& one = to.sent[to.next_sent];
    const auto head = std::as_bytes(std::span(&one.size, 1));
    const auto rest = one.done < head.size() ? head.subspan(one.done) : one.bytes.subspan(one.done - head.size());
    one.done += moved(send(socket, rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
    if (one.done == head.size() + one.bytes.size()) ++to.next_sent;
  }

  static void receive_some(int socket, peer& from) {
    auto& one = from.received[from.next_received];
    const auto head = std::as_writable_bytes(std::span(&one.size, 1));
    std::array<std::byte, 4096> unwanted;  // bytes of a message that has another size
    std::span<std::byte> rest = unwanted;
    if (one.done < head.size())
      rest = head.subspan(one.done);
    else if (one.size == one.bytes.size())
      rest = one.bytes.subspan(one.done - head.size());
    else
      rest = rest.first(std::min<std::size_t>(rest.size(), one.size - (one.done - head.size())));
    const auto received = recv(socket, rest.data(), rest.size(), MSG_DONTWAIT);
    if (received == 0) throw adasum::communication_error("a rank has ended");
    one.done += moved(received);
    if (one.done < head.size() || one.done < head.size() + one.size) return;
    from.is_wrong = from.is_wrong || one.size != one.bytes.size();
    ++from.next_received;
  }

  /// How many bytes send() or recv() has moved.
  static std::size_t moved(ssize_t result) {
    if (result >= 0) return static_cast<std::size_t>(result);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
    throw adasum::communication_error(std::generic_category().message(errno));
  }

  std::shared_ptr<contents> shared_;  // copies are handles to the same communicator
};
static_assert(adasum::communicator_for<socket_communicator, adasum::serial_space>);

std::vector<float> gradient_of(int rank) {
  std::vector<float> gradient(1000);
  for (std::size_t x = 0; x < gradient.size(); ++x)
    gradient[x] = static_cast<float>((x + 3) % (5 + static_cast<unsigned>(rank)));
  return gradient;
}

/// What each rank does. Returns whether all was right.
bool run(const socket_communicator& comm) {
  alarm(60);  // a wrong communicator may wait for ever
  adasum::check_communicator(comm, adasum::serial_space{});

  auto gradient = gradient_of(comm.rank());
  const adasum::segments layers{600, 400};
  adasum::adasum_allreduce(adasum::serial_space{}, comm, gradient, layers);

  std::vector<std::vector<float>> all;
  for (int rank = 0; rank < comm.size(); ++rank) all.push_back(gradient_of(rank));
  std::vector<float> expected(gradient.size());
  adasum::adasum_tree(adasum::serial_space{}, all, expected, layers);
  return std::equal(gradient.begin(), gradient.end(), expected.begin(),
                    [](float x, float y) { return std::abs(x - y) <= 1e-4f; });
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 3;
  if (ranks < 1 || ranks > 30) {
    std::fputs("give a number of ranks from 1 to 30\n", stderr);
    return 2;
  }
  const auto count = static_cast<std::size_t>(ranks);
  // sockets[i][j]: rank i's end towards rank j
  std::vector<std::vector<int>> sockets(count, std::vector<int>(count, -1));
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        std::perror("socketpair");
        return 2;
      }
      sockets[i][j] = ends[0];
      sockets[j][i] = ends[1];
    }

  int rank = 0;  // of this process; its children are the others
  for (int child = 1; child < ranks; ++child)
    if (fork() == 0) {
      rank = child;
      break;
    }
  // The other ranks' sockets: that a rank has ended is noticed only if all copies of its sockets are closed.
  for (std::size_t i = 0; i < count; ++i)
    if (static_cast<int>(i) != rank)
      for (const int end : sockets[i])
        if (end >= 0) close(end);

  bool right = false;
  try {
    right = run(socket_communicator(rank, sockets[static_cast<std::size_t>(rank)]));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "rank %d: %s\n", rank, problem.what());
  }
  for (int status = 0; rank == 0 && wait(&status) > 0;) right = right && status == 0;
  if (rank == 0) std::printf("%d ranks over sockets: %s\n", ranks, right ? "right" : "wrong");
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
