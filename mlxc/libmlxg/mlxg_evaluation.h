// An evaluation: the arrays that one call computes, and their error.
#ifndef MLXG_EVALUATION_H
#define MLXG_EVALUATION_H

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mlx/event.h"
#include "mlx/primitives.h"
#include "mlxg_internal.h"

namespace mlxg {

namespace mx = mlx::core;

// An evaluation computes arrays and has the error of exactly these.
//
// MLX keeps the first exception of a CPU task with the task's stream, and gives it to the next
// thread that looks at the stream, for whatever array. So an evaluation adds tasks of its own,
// which take the error off the stream: around each node that can fail in its task
// (factorizations and the like), and behind all nodes, for any other error (memory). The graph
// lock is held while an evaluation is scheduled, so tasks of two evaluations never mix.
//
// MLX marks the nodes of a failed evaluation as computed. settle makes the failed nodes, and the
// nodes that depend on them, fail at every later use. Nodes that do not depend on a failed node
// keep their values: a program may go on with the operands of a factorization that failed. After
// an error that belongs to no node, no node of the evaluation keeps its value.
//
// All functions need the graph lock. The tasks run without it.
class evaluation : public std::enable_shared_from_this<evaluation> {
 public:
  // of plans the evaluation of the roots that have no value. With waited set, the caller reports
  // the error; else take_unread does if no later call comes across it.
  static std::shared_ptr<evaluation> of(const arrays& roots, bool waited);

  // start hands the work to MLX's streams. It throws errors of scheduling.
  void start(const arrays& roots);
  // run computes with MLX's own eval, which waits, and throws every error.
  void run(const arrays& roots);
  // check throws the error of the tasks. The roots' events must be signaled.
  void check();

 private:
  class task;
  class guarded;
  friend void settle();

  // A source is an operand that another evaluation computes, which may still run. user is the
  // node that reads it, or `none` for a root.
  struct source {
    std::shared_ptr<evaluation> computed_by;
    std::uintptr_t id;
    size_t user;
  };
  static constexpr size_t none = SIZE_MAX;
  using places = std::unordered_map<std::uintptr_t, size_t>;  // nodes by id

  explicit evaluation(bool waited) : waited_(waited) {}
  void walk(const arrays& roots);
  void add(const mx::array& a, places& seen, bool record);
  void add_source(const mx::array& a, size_t user);
  void add_stream(mx::Stream s);
  void guard_nodes();
  void restore_nodes();
  void give_up(const arrays& roots, const char* what);
  void take_error(mx::Stream s, size_t node);
  void finish();
  void fail_nodes();
  bool is_bad(std::uintptr_t id) const;
  std::shared_ptr<std::atomic<bool>> reported() { return {shared_from_this(), &reported_}; }

  // The nodes to compute, operands first. The references do not count: MLX gives the memory of a
  // node that nothing else refers to to another node.
  std::vector<std::weak_ptr<void>> nodes_;
  std::vector<mx::Stream> streams_;
  std::vector<source> sources_;
  std::vector<mx::Event> events_;  // one for each stream, signaled when state_ is final

  // Only if a node can fail in its task, or a source's: ids and operands of the nodes, and the
  // primitives of the nodes that can fail.
  bool precise_ = false;
  std::vector<std::uintptr_t> ids_;
  std::vector<std::vector<size_t>> operands_;
  std::vector<std::pair<size_t, std::shared_ptr<mx::Primitive>>> guarded_;

  // Written by tasks; failing tasks of several streams take a mutex.
  std::vector<char> bad_;  // by node
  bool all_bad_ = false;
  std::string error_;
  std::atomic<size_t> left_ = 0;  // streams that still run
  enum state { running, fine, failed, settled };
  std::atomic<state> state_ = running;

  const bool waited_;
  std::atomic<bool> reported_ = false;  // whether a call has returned the error
};

// settle makes the nodes of failed evaluations fail for good.
void settle();

// available reports whether a has its value.
bool available(const mx::array& a);

// take_unread returns and forgets the first error of an evaluation on the stream that no call has
// reported, "" if there is none. It does not need the graph lock.
std::string take_unread(mx::Stream s);

}  // namespace mlxg

#endif
