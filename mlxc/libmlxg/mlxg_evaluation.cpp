// Planning, starting and waiting for evaluations.
#include "mlxg_evaluation.h"

#include <algorithm>
#include <list>
#include <string_view>
#include <typeinfo>
#include <unordered_set>

#include "mlx/mlx.h"
#include "mlx/scheduler.h"
#include "mlxg_immortal.h"
#include "mlxg_primitive.h"

namespace mx = mlx::core;

namespace {

// opened gives access to mlx::core::array::array_desc_, a private member: explicit instantiations may name it. The
// member is the array's reference to its node.
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

// can_fail reports whether the CPU tasks of the primitive can throw an error other than an out-of-memory error.
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

// evaluations holds the evaluations that may still run, by event and in the order of their start. The graph lock guards
// it.
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

}  // namespace

namespace mlxg {

std::weak_ptr<void> node_of(const mx::array& a) {
  return weak_node(a);
}

void with_node(const std::weak_ptr<void>& node, const std::function<void(const mx::array&)>& f) {
  if (auto locked = node.lock()) {
    mx::array a(mx::Shape{}, mx::bool_, nullptr, {});
    set_node(a, std::move(locked));
    f(a);
  }
}

size_t references(const mx::array& a) {
  return weak_node(a).use_count();
}

// A task node takes the errors of the stream after the last node of an evaluation. Without an evaluation it only orders
// streams.
class evaluation::task : public opaque {
 public:
  task(mx::Stream s, std::shared_ptr<evaluation> e) : opaque(s, "Evaluation"), e_(std::move(e)) {}

  void eval_cpu(const arrays&, arrays& outputs) override {
    static const bool fences = mx::is_available(mx::Device::gpu);
    if (fences) {
      allocate(outputs);  // MLX's fence between CPU and GPU reads the buffer
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

// guarded wraps the primitive of a node that can fail in its task, and takes the errors before and after the node.
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

std::shared_ptr<evaluation> evaluation::plan(const arrays& roots, bool waited) {
  require_open();
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
    e->walk(roots);  // records the operands
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
    // No stream signals its event before the tasks of all streams have run.
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

void submit(arrays roots, bool on_cpu) {
  if (on_cpu || !by_event.empty()) {
    evaluation::plan(roots, false)->start(roots);
    return;
  }
  require_open();
  settle();
  mx::async_eval(std::move(roots));
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
    finish();  // no task ran, but roots may have failed in another evaluation
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

// restore_nodes gives guarded nodes their primitives back. Inside a transform, MLX keeps evaluated nodes in the graph,
// so the transform must not find the guard.
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

}  // namespace mlxg
