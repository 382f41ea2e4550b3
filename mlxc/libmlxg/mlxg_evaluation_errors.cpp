// The errors of evaluations: which nodes failed, and the calls that report it.
#include <algorithm>
#include <map>
#include <mutex>

#include "mlx/mlx.h"
#include "mlx/scheduler.h"
#include "mlxg_evaluation.h"
#include "mlxg_immortal.h"
#include "mlxg_primitive.h"

namespace mx = mlx::core;

namespace {

// make_failed replaces the primitive of a so that every later evaluation of it throws, even if MLX has marked it as
// computed.
void make_failed(const mx::array& a, const std::string& what, std::shared_ptr<std::atomic<bool>> reported) {
  a.primitive_ptr() = std::make_shared<mlxg::failed>(
      *static_cast<mx::Stream*>(mlxg_device_stream(0)), "Eval", what, std::move(reported));
  a.set_status(mx::array::Status::unscheduled);
  a.attach_event(mx::Event{});
}

// State that failing tasks write, guarded by the mutex `failing`: evaluations whose failed nodes settle has not yet
// replaced, and unreported errors.
mlxg::immortal<std::mutex> settling;
auto& failing = settling.value;
mlxg::immortal<std::vector<std::shared_ptr<mlxg::evaluation>>> all_unsettled;
auto& unsettled = all_unsettled.value;
std::atomic<bool> any_unsettled = false;
// unread is the error of an asynchronous evaluation. It is ignored once any call has reported it.
struct unread {
  std::string error;
  std::shared_ptr<std::atomic<bool>> reported;
};
mlxg::immortal<std::map<int, unread>> all_unread;
auto& unread_by_stream = all_unread.value;

}  // namespace

namespace mlxg {

// give_up ends an evaluation whose scheduling threw. MLX has waited for the scheduled tasks.
void evaluation::give_up(const arrays& roots, const char* what) {
  restore_nodes();
  bool all_scheduled = true;
  for (auto& node : nodes_) {
    with_node(node, [&](const mx::array& a) {
      all_scheduled = all_scheduled && a.status() != mx::array::Status::unscheduled;
    });
  }
  // If all nodes are scheduled, the exception belongs to a task of no known node.
  all_bad_ = all_bad_ || all_scheduled;
  if (error_.empty()) {
    error_ = what;
  }
  if (state_ == running) {
    finish();
  }
  reported_ = true;
  settle();
  for (auto& r : roots) {
    if (r.status() == mx::array::Status::unscheduled && r.has_primitive()) {
      make_failed(r, what, reported());
    }
  }
}

// take_error takes the pending error of the stream s. It is itself a task of s, after the tasks of the node. With
// `none` it follows tasks whose errors belong to no known node, and marks all nodes as bad.
void evaluation::take_error(mx::Stream s, size_t node) {
  try {
    mx::scheduler::check_error(s);
  } catch (std::exception& e) {
    std::lock_guard lock(failing);
    if (error_.empty()) {
      error_ = e.what();
    }
    if (node == none) {
      all_bad_ = true;
    } else {
      bad_[node] = true;
    }
  }
}

// finish determines the failed nodes after all tasks have run. The sources have finished too: they are earlier on the
// same streams, or MLX waited for them.
void evaluation::finish() {
  if (state_ != running) {
    return;
  }
  bool any = all_bad_;
  for (auto& s : sources_) {
    if (s.computed_by->is_bad(s.id)) {
      any = true;
      if (error_.empty()) {
        error_ = s.computed_by->error_;
      }
      if (waited_) {
        s.computed_by->reported_ = true;
      }
      if (s.user != none && precise_) {
        bad_[s.user] = true;
      } else if (s.user != none) {
        all_bad_ = true;
      }
    }
  }
  sources_.clear();
  for (size_t i = 0; i < bad_.size(); i++) {
    for (auto operand : operands_[i]) {
      bad_[i] = bad_[i] || bad_[operand];
    }
    any = any || bad_[i];
  }
  operands_.clear();
  if (!any) {
    state_ = fine;
    return;
  }
  std::lock_guard lock(failing);
  state_ = failed;
  unsettled.push_back(shared_from_this());
  any_unsettled = true;
  if (!waited_) {
    for (auto& s : streams_) {
      auto& u = unread_by_stream[s.index];
      if (!u.reported || *u.reported) {
        u = {error_, reported()};
      }
    }
  }
}

bool evaluation::is_bad(std::uintptr_t id) const {
  if (state_ == fine || state_ == running) {
    return false;
  }
  auto at = std::find(ids_.begin(), ids_.end(), id);
  return all_bad_ || (at != ids_.end() && bad_[at - ids_.begin()]);
}

void evaluation::fail_nodes() {
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (all_bad_ || bad_[i]) {
      with_node(nodes_[i], [&](const mx::array& a) {
        if (a.status() != mx::array::Status::unscheduled) {
          make_failed(a, error_, reported());
        }
      });
    }
  }
  nodes_.clear();
  state_ = settled;
}

void settle() {
  if (!any_unsettled) {
    return;
  }
  std::vector<std::shared_ptr<evaluation>> list;
  {
    std::lock_guard lock(failing);
    list.swap(unsettled);
    any_unsettled = false;
  }
  for (auto& e : list) {
    e->fail_nodes();
  }
}

bool available(const mx::array& a) {
  // is_available must come before settle: an evaluation records its failure before its event is signaled.
  bool there = a.is_available();
  settle();
  return there && a.is_available();
}

std::string take_unread(mx::Stream s) {
  std::lock_guard lock(failing);
  auto found = unread_by_stream.find(s.index);
  if (found == unread_by_stream.end()) {
    return "";
  }
  auto u = std::move(found->second);
  unread_by_stream.erase(found);
  return *u.reported ? "" : u.error;
}

}  // namespace mlxg
