// An evaluation: the arrays that one call computes, and their error.
#ifndef MLXG_EVALUATION_H
#define MLXG_EVALUATION_H

#include <atomic>
#include <functional>
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

// An evaluation computes arrays and reports the error of exactly these arrays.
//
// MLX stores the first exception of a CPU task in the task's stream and throws it on the next thread that checks the
// stream, for any array (fault error-in-another-evaluation). An evaluation therefore adds tasks that take the error off
// the stream: before and after each node that can fail in its task (such as a factorization), and after all nodes for
// other errors (out of memory). The graph lock is held while an evaluation is scheduled, so the tasks of two
// evaluations never interleave.
//
// MLX marks the nodes of a failed evaluation as computed (fault failed-evaluation-has-values). settle makes the failed
// nodes, and the nodes that depend on them, fail at every later use. Other nodes keep their values: a program may
// continue with the operands of a failed factorization. After an error that belongs to no known node, all nodes of the
// evaluation fail.
//
// The caller of each function holds the graph lock. The tasks run without it.
class evaluation : public std::enable_shared_from_this<evaluation> {
 public:
  // plan returns the evaluation of all roots that have no value yet. With waited set, the caller reports the error.
  // Otherwise take_unread returns it, unless a later call reports it.
  static std::shared_ptr<evaluation> plan(const arrays& roots, bool waited);

  // start submits the work to MLX's streams and does not wait. It throws the errors of scheduling.
  void start(const arrays& roots);
  // run evaluates with MLX's eval and waits. It throws the errors of scheduling and of the tasks.
  void run(const arrays& roots);
  // check throws the first error of the tasks, if any. The caller must have waited for the roots' events.
  void check();

 private:
  class task;
  class guarded;
  friend void settle();

  // A source is an operand that another evaluation computes or has computed. id identifies its node there. user is the
  // index of the node that reads it, or `none` for a root.
  struct source {
    std::shared_ptr<evaluation> computed_by;
    std::uintptr_t id;
    size_t user;
  };
  static constexpr size_t none = SIZE_MAX;
  using places = std::unordered_map<std::uintptr_t, size_t>;  // indices of nodes by id

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

  // The nodes to compute, operands first. The references are weak: MLX reuses the memory of a node whose last strong
  // reference is gone.
  std::vector<std::weak_ptr<void>> nodes_;
  std::vector<mx::Stream> streams_;
  std::vector<source> sources_;
  std::vector<mx::Event> events_;  // one per stream, signaled when state_ is final

  // precise_ is set if a node, or a node of a source's evaluation, can fail in its task. Errors are then attributed to
  // single nodes. This needs the ids and operands of all nodes, and the primitives of the nodes that can fail.
  bool precise_ = false;
  std::vector<std::uintptr_t> ids_;
  std::vector<std::vector<size_t>> operands_;
  std::vector<std::pair<size_t, std::shared_ptr<mx::Primitive>>> guarded_;

  // Tasks write these members. A failing task holds the mutex `failing`.
  std::vector<char> bad_;  // by node
  bool all_bad_ = false;
  std::string error_;
  std::atomic<size_t> left_ = 0;  // streams that still run
  enum state { running, fine, failed, settled };
  std::atomic<state> state_ = running;

  const bool waited_;
  std::atomic<bool> reported_ = false;  // whether a call has returned the error
};

// submit starts the evaluation of all roots that have no value yet and does not wait. on_cpu tells whether one of the
// nodes runs on a CPU. If none does, and no task of an earlier evaluation may still run, there is nothing to plan.
void submit(arrays roots, bool on_cpu);

// node_of returns a reference to the node of a, which does not keep it.
std::weak_ptr<void> node_of(const mx::array& a);

// with_node calls f with the array of a node if the node still exists.
void with_node(const std::weak_ptr<void>& node, const std::function<void(const mx::array&)>& f);

// references returns how many arrays and nodes refer to the node of a, including a itself.
size_t references(const mx::array& a);

// settle makes the nodes of failed evaluations fail at every later use.
void settle();

// available reports whether a is computed and its evaluation did not fail.
bool available(const mx::array& a);

// take_unread removes and returns the first error of an evaluation on the stream that no call has reported, or "". It
// does not need the graph lock.
std::string take_unread(mx::Stream s);

}  // namespace mlxg

#endif
