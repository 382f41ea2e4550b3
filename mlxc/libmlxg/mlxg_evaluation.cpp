// Evaluations with an error of their own.
#include "mlxg_evaluation.h"

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <string_view>
#include <typeinfo>
#include <unordered_set>

#include "mlx/mlx.h"
#include "mlx/scheduler.h"
#include "mlxg_immortal.h"
#include "mlxg_primitive.h"

namespace mx = mlx::core;

namespace {

// opened gives access to an array's reference to its node, for references that do not count.
template <auto Node>
struct opened {
  friend std::weak_ptr<void> weak_node(const mx::array& a) { return a.*Node; }
  friend void set_node(mx::array& a, std::shared_ptr<void> node) {
    using pointer = std::remove_reference_t<decltype(a.*Node)>;
    a.*Node = std::static_pointer_cast<typename pointer::element_type>(std::move(node));
  }
};
std::weak_ptr<void> weak_node(const mx::array&);
void set_node(mx::array&, std::shared_ptr<void>);
template struct opened<&mx::array::array_desc_>;

// with_node calls f with the node's array if the node is still there.
template <typename F>
void with_node(const std::weak_ptr<void>& node, F&& f) {
  if (auto there = node.lock()) {
    mx::array a(mx::Shape{}, mx::bool_, nullptr, {});
    set_node(a, std::move(there));
    f(a);
  }
}

// can_fail reports whether the CPU tasks of the primitive can throw, other than for lack of memory.
bool can_fail(const mx::Primitive& p) {
  static const auto& names = *new std::unordered_set<std::string_view>{
      "Cholesky", "Eig",       "Eigh",      "Inverse",       "LUF",  "Load", "QRF",
      "SVD",      "AllGather", "AllReduce", "ReduceScatter", "Recv", "Send"};
  static auto& known = *new std::unordered_map<const std::type_info*, bool>;  // the graph lock guards it
  auto [type, is_new] = known.try_emplace(&typeid(p), false);
  if (is_new) {
    std::string_view name = p.name();
    type->second = names.count(name.substr(name.rfind(' ') + 1)) > 0;  // "Sum AllReduce"
  }
  return type->second;
}

// The evaluations that may still run, by their events, and in the order of their start. The graph
// lock guards them.
struct evaluations {
  std::unordered_map<const void*, std::shared_ptr<mlxg::evaluation>> by_event;
  std::list<std::shared_ptr<mlxg::evaluation>> started;
};
mlxg::immortal<evaluations> all;
auto& by_event = all.value.by_event;
auto& started = all.value.started;

const void* key_of(const mx::Event& e) {
  return &e.cast<char>();
}

// fail_for_good makes every evaluation of a fail, also if MLX takes it for computed.
void fail_for_good(const mx::array& a, const std::string& what, std::shared_ptr<std::atomic<bool>> reported) {
  a.primitive_ptr() = std::make_shared<mlxg::failed>(
      *static_cast<mx::Stream*>(mlxg_device_stream(0)), "Eval", what, std::move(reported));
  a.set_status(mx::array::Status::unscheduled);
  a.attach_event(mx::Event{});
}

// What tasks that fail write to.
mlxg::immortal<std::mutex> settling;
auto& failing = settling.value;
mlxg::immortal<std::vector<std::shared_ptr<mlxg::evaluation>>> all_unsettled;
auto& unsettled = all_unsettled.value;
std::atomic<bool> any_unsettled = false;
struct unread {
  std::string error;
  std::shared_ptr<std::atomic<bool>> reported;
};
mlxg::immortal<std::map<int, unread>> all_unread;
auto& unread_by_stream = all_unread.value;

}  // namespace

namespace mlxg {

// A task node takes the errors behind the nodes of an evaluation on a stream. Without an
// evaluation it only orders streams.
class evaluation::task : public opaque {
 public:
  task(mx::Stream s, std::shared_ptr<evaluation> e) : opaque(s, "Evaluation"), e_(std::move(e)) {}

  void eval_cpu(const arrays&, arrays& outputs) override {
    static const bool fences = mx::is_available(mx::Device::gpu);
    if (fences) {
      allocate(outputs);  // MLX's fence between a CPU and a GPU reads the buffer of the array
    }
    if (!e_) {
      return;
    }
    mx::scheduler::enqueue(stream(), [e = e_, s = stream()] {
      e->take_error(s, none);
      if (--e->left_ == 0) {
        e->finish();
      }
    });
  }
  void eval_gpu(const arrays&, arrays& outputs) override { allocate(outputs); }

 private:
  std::shared_ptr<evaluation> e_;
};

// A guarded node is one that can fail in its task.
class evaluation::guarded : public opaque {
 public:
  guarded(std::shared_ptr<mx::Primitive> p, std::shared_ptr<evaluation> e, size_t node)
      : opaque(p->stream(), p->name()), p_(std::move(p)), e_(std::move(e)), node_(node) {}

  void eval_cpu(const arrays& inputs, arrays& outputs) override {
    auto then_take = [&](size_t node) {
      mx::scheduler::enqueue(stream(), [e = e_, s = stream(), node] { e->take_error(s, node); });
    };
    then_take(none);
    p_->eval_cpu(inputs, outputs);
    then_take(node_);
  }

 private:
  std::shared_ptr<mx::Primitive> p_;
  std::shared_ptr<evaluation> e_;
  size_t node_;
};

std::shared_ptr<evaluation> evaluation::of(const arrays& roots, bool waited) {
  refuse_if_closed();
  settle();
  while (!started.empty() && started.front()->state_ != running && started.front()->state_ != failed) {
    for (auto& e : started.front()->events_) {
      by_event.erase(key_of(e));
    }
    started.pop_front();
  }
  std::shared_ptr<evaluation> e(new evaluation(waited));
  e->walk(roots);
  if (e->precise_) {
    e->walk(roots);  // now with the operands
    e->bad_.resize(e->nodes_.size());
  }
  return e;
}

void evaluation::walk(const arrays& roots) {
  nodes_.clear();
  sources_.clear();
  places seen;
  std::vector<std::pair<const mx::array*, size_t>> path;
  auto enter = [&](const mx::array& a) {
    if (a.status() == mx::array::Status::unscheduled && seen.try_emplace(a.id(), none).second) {
      path.emplace_back(&a, 0);
    }
  };
  bool record = precise_;
  for (auto& r : roots) {
    add_source(r, none);
    enter(r);
    while (!path.empty()) {
      auto& [a, next] = path.back();
      if (next < a->inputs().size()) {
        enter(a->inputs()[next++]);
      } else {
        add(*a, seen, record);
        path.pop_back();
      }
    }
  }
}

void evaluation::add(const mx::array& a, places& seen, bool record) {
  size_t place = nodes_.size();
  auto put = [&](const mx::array& node, std::vector<size_t> operands) {
    nodes_.push_back(weak_node(node));
    if (record) {
      seen[node.id()] = ids_.size();
      ids_.push_back(node.id());
      operands_.push_back(std::move(operands));
    }
  };
  std::vector<size_t> operands;
  for (auto& in : a.inputs()) {
    add_source(in, place);
    if (record && in.status() == mx::array::Status::unscheduled) {
      operands.push_back(seen.at(in.id()));
    }
  }
  put(a, std::move(operands));
  for (auto& s : a.siblings()) {
    seen.try_emplace(s.id(), none);
    put(s, {place});
  }
  if (a.has_primitive()) {
    add_stream(a.primitive().stream());
    if (a.primitive().device() == mx::Device::cpu && can_fail(a.primitive())) {
      precise_ = true;
      if (record) {
        guarded_.emplace_back(place, a.primitive_ptr());
      }
    }
  }
}

void evaluation::add_source(const mx::array& a, size_t user) {
  if (by_event.empty() || a.status() != mx::array::Status::evaluated || !a.event().valid()) {
    return;
  }
  auto found = by_event.find(key_of(a.event()));
  if (found != by_event.end()) {
    sources_.push_back({found->second, a.id(), user});
    precise_ = precise_ || found->second->precise_;
    add_stream(a.event().stream());
  }
}

void evaluation::add_stream(mx::Stream s) {
  if (std::find(streams_.begin(), streams_.end(), s) == streams_.end()) {
    streams_.push_back(s);
  }
}

void evaluation::start(const arrays& roots) {
  if (nodes_.empty()) {
    return;
  }
  arrays ends;
  auto end = [&](mx::Stream s, std::shared_ptr<evaluation> e, const arrays& after) {
    ends.emplace_back(mx::Shape{}, mx::bool_, std::make_shared<task>(s, std::move(e)), after);
  };
  for (auto& s : streams_) {
    if (s.device == mx::Device::cpu) {
      end(s, shared_from_this(), roots);
    }
  }
  left_ = ends.size();
  if (ends.empty()) {
    mx::async_eval(roots);
    return;
  }
  if (streams_.size() > 1) {
    // No stream signals before the tasks of all have run.
    auto tasks = std::move(ends);
    ends.clear();
    for (auto& s : streams_) {
      end(s, nullptr, tasks);
    }
  }
  guard_nodes();
  try {
    mx::async_eval(ends);
  } catch (std::exception& e) {
    give_up(roots, e.what());
    throw;
  }
  restore_nodes();
  for (auto& e : ends) {
    events_.push_back(e.event());
    by_event[key_of(e.event())] = shared_from_this();
  }
  started.push_back(shared_from_this());
}

void evaluation::run(const arrays& roots) {
  guard_nodes();
  try {
    mx::eval(roots);
    for (auto& s : streams_) {
      if (s.device == mx::Device::cpu && streams_.size() > 1) {
        mx::synchronize(s);
      }
    }
  } catch (std::exception& e) {
    give_up(roots, e.what());
    throw;
  }
  restore_nodes();
  finish();
  check();
}

void evaluation::check() {
  if (state_ == running) {
    finish();  // nothing was started, but roots may have failed elsewhere
  }
  if (state_ != fine) {
    reported_ = true;
    settle();
    throw std::runtime_error(error_);
  }
  nodes_.clear();
}

void evaluation::guard_nodes() {
  for (auto& entry : guarded_) {
    with_node(nodes_[entry.first], [&](const mx::array& a) {
      auto guard = std::make_shared<guarded>(entry.second, shared_from_this(), entry.first);
      for (auto& o : a.outputs()) {
        o.primitive_ptr() = guard;
      }
    });
  }
}

// restore_nodes gives the nodes that keep their place in a graph, as in a transform, their
// primitives back.
void evaluation::restore_nodes() {
  for (auto& entry : guarded_) {
    with_node(nodes_[entry.first], [&](const mx::array& a) {
      if (a.has_primitive()) {
        for (auto& o : a.outputs()) {
          o.primitive_ptr() = entry.second;
        }
      }
    });
  }
  guarded_.clear();
}

// give_up ends an evaluation that MLX ended with an exception. MLX has waited for its tasks.
void evaluation::give_up(const arrays& roots, const char* what) {
  restore_nodes();
  bool all_scheduled = true;
  for (auto& node : nodes_) {
    with_node(node, [&](const mx::array& a) {
      all_scheduled = all_scheduled && a.status() != mx::array::Status::unscheduled;
    });
  }
  // If all is scheduled, the exception is that of a task that belongs to no node.
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
      fail_for_good(r, what, reported());
    }
  }
}

// take_error runs on a stream's thread, behind the tasks of a node, or of the nodes that cannot
// fail.
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

// finish decides which nodes failed, when all tasks have run. The sources have finished: they are
// earlier on the same streams, or MLX waited for them.
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
          fail_for_good(a, error_, reported());
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
  // In this order: an evaluation fails before its event is signaled.
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
