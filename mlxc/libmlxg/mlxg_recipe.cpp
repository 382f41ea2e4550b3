// Recipes: differentiable operations whose graphs are recorded once per signature and then added again for other
// arrays, without a call of Go.
#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlxg_bound.h"
#include "mlxg_evaluation.h"
#include "mlxg_launch.h"
#include "mlxg_primitive.h"
#include "mlxg_transforms.h"

namespace mx = mlx::core;

using mlxg::arrays;

namespace {

// The number of launches that recipes have added, less those of their recordings, which Go counts.
std::atomic<uint64_t> launched = 0;

// launches_of returns the number of kernels that a node launches.
size_t launches_of(const mx::Primitive& p) {
  if (auto w = dynamic_cast<const mlxg::wrapper*>(&p)) {
    return launches_of(*w->wrapped());
  }
  auto own = dynamic_cast<const mlxg::opaque*>(&p);
  return own ? own->launches() : std::string_view(p.name()) == "CustomKernel";
}

// graph is a recorded function of arrays. Its arrays are numbered: first the arguments, then the constants, then the
// outputs of the nodes in order.
struct graph {
  struct node {
    std::shared_ptr<mx::Primitive> primitive;
    std::vector<size_t> inputs;
    std::vector<mx::Shape> shapes;
    std::vector<mx::Dtype> dtypes;
  };
  arrays constants;  // do not depend on the arguments, and have been computed
  std::vector<node> nodes;
  std::vector<size_t> outputs;
  size_t launches = 0;  // the number of kernels that the nodes launch

  // call adds the nodes for other arguments. The nodes share the primitives, as do the calls of a compiled function.
  arrays call(const arrays& arguments) const {
    launched += launches;
    arrays made;
    made.reserve(2 * nodes.size());
    auto numbered = [&](size_t i) -> const mx::array& {
      if (i < arguments.size()) {
        return arguments[i];
      }
      i -= arguments.size();
      return i < constants.size() ? constants[i] : made[i - constants.size()];
    };
    for (auto& n : nodes) {
      arrays in;
      in.reserve(n.inputs.size());
      for (auto i : n.inputs) {
        in.push_back(numbered(i));
      }
      if (n.shapes.size() == 1) {
        made.emplace_back(n.shapes[0], n.dtypes[0], n.primitive, std::move(in));
      } else {
        auto outs = mx::array::make_arrays(n.shapes, n.dtypes, n.primitive, in);
        std::move(outs.begin(), outs.end(), std::back_inserter(made));
      }
    }
    arrays results;
    results.reserve(outputs.size());
    for (auto o : outputs) {
      results.push_back(numbered(o));
    }
    return results;
  }
};

// recorder numbers the arrays of a graph in the order of evaluation.
class recorder {
 public:
  recorder(const arrays& arguments, const arrays& outputs) {
    for (auto& a : arguments) {
      numbers_.emplace(a.id(), numbers_.size());
    }
    visit(outputs, [&](const mx::array& a) {
      if (is_constant(a)) {
        constants_.insert(a.id());
        numbers_.emplace(a.id(), numbers_.size());
        graph_.constants.push_back(a);
      }
    });
    visit(outputs, [&](const mx::array& a) { add(a); });
    for (auto& o : outputs) {
      graph_.outputs.push_back(numbers_.at(o.id()));
    }
    pair_launches(arguments.size());
    bind_constants(arguments.size());
  }

  graph take() { return std::move(graph_); }

 private:
  // A computed array may still have its node.
  static bool is_computed(const mx::array& a) {
    return !a.has_primitive() || a.status() != mx::array::Status::unscheduled;
  }

  // is_constant reports whether a is computed. It computes small arrays that depend only on constants, such as the
  // placeholder of an omitted operand, so that calls do not add their nodes.
  bool is_constant(mx::array a) {
    constexpr size_t most_bytes = 1024;
    if (is_computed(a)) {
      return true;
    }
    auto& in = a.inputs();
    if (a.nbytes() > most_bytes || !a.siblings().empty() || launches_of(a.primitive()) > 0 ||
        !std::all_of(in.begin(), in.end(), [&](auto& i) { return constants_.count(i.id()) > 0; })) {
      return false;
    }
    mx::eval({a});
    return true;
  }

  // visit calls f for the arrays that have no number, each after its inputs and at least once. It does not recurse,
  // since graphs are deep.
  template <typename F>
  void visit(const arrays& roots, F f) {
    std::unordered_set<std::uintptr_t> done;
    for (auto& root : roots) {
      std::vector<mx::array> todo{root};
      while (!todo.empty()) {
        mx::array a = todo.back();
        auto size = todo.size();
        if (!done.count(a.id()) && !numbers_.count(a.id())) {
          for (auto& in : is_computed(a) ? arrays{} : a.inputs()) {
            if (!done.count(in.id()) && !numbers_.count(in.id())) {
              todo.push_back(in);
            }
          }
          if (todo.size() > size) {
            continue;
          }
          f(a);
          done.insert(a.id());
        }
        todo.pop_back();
      }
    }
  }

  void add(const mx::array& a) {
    graph::node n{a.primitive_ptr()};
    for (auto& in : a.inputs()) {
      n.inputs.push_back(numbers_.at(in.id()));
    }
    for (auto& o : a.outputs()) {
      numbers_.emplace(o.id(), numbers_.size());
      n.shapes.push_back(o.shape());
      n.dtypes.push_back(o.dtype());
    }
    graph_.launches += launches_of(*n.primitive);
    graph_.nodes.push_back(std::move(n));
  }

  // bind_constants replaces the constants of each launch by one keeper, if there are several. n is the number of
  // arguments.
  void bind_constants(size_t n) {
    arrays constants = std::exchange(graph_.constants, {}), keepers;
    auto last = n + constants.size(), count = numbers_.size();
    for (auto& node : graph_.nodes) {
      mlxg::constant_inputs bound;
      for (size_t i = 0; i < node.inputs.size(); i++) {
        if (auto number = node.inputs[i]; number >= n && number < last) {
          bound.emplace(i, constants[number - n]);
        }
      }
      if (bound.size() > 1 && launches_of(*node.primitive) > 0) {
        std::erase_if(node.inputs, [&](auto number) { return number >= n && number < last; });
        node.inputs.push_back(count + keepers.size());
        keepers.push_back(mlxg::keeper_of(bound));
        node.primitive = mlxg::bound_launch(std::move(node.primitive), std::move(bound));
      }
    }
    constants.insert(constants.end(), keepers.begin(), keepers.end());
    renumber(n, last, count, std::move(constants));
  }

  // pair_launches replaces two consecutive launches by one node if the second reads results of the first and may start
  // early. n is the number of arguments. The numbers of arrays do not change.
  void pair_launches(size_t n) {
    auto& nodes = graph_.nodes;
    auto first_output = n + graph_.constants.size();
    for (size_t i = 0; i + 1 < nodes.size(); i++) {
      auto &a = nodes[i], &b = nodes[i + 1];
      const size_t outputs = a.shapes.size();
      auto inputs = a.inputs;
      std::vector<size_t> places;
      bool depends = false;
      for (auto number : b.inputs) {
        if (number >= first_output && number < first_output + outputs) {
          places.push_back(number - first_output);
          depends = true;
        } else {
          places.push_back(outputs + inputs.size());
          inputs.push_back(number);
        }
      }
      first_output += outputs;
      if (auto pair = depends ? mlxg::pair_of(a.primitive, b.primitive, a.inputs.size(), outputs, places) : nullptr) {
        first_output += b.shapes.size();
        a.primitive = std::move(pair);
        a.inputs = std::move(inputs);
        a.shapes.insert(a.shapes.end(), b.shapes.begin(), b.shapes.end());
        a.dtypes.insert(a.dtypes.end(), b.dtypes.begin(), b.dtypes.end());
        nodes.erase(nodes.begin() + i + 1);
      }
    }
  }

  // renumber keeps the constants that are inputs or outputs. Their numbers are those from n to last, and from count on.
  void renumber(size_t n, size_t last, size_t count, const arrays& constants) {
    constexpr size_t none = -1;
    std::vector<size_t> kept(constants.size(), none);
    auto place = [&](size_t number) {
      return number < n || (number >= last && number < count) ? none : number - n - (number < last ? 0 : count - last);
    };
    auto each_number = [&](auto&& f) {
      for (auto& node : graph_.nodes) {
        std::for_each(node.inputs.begin(), node.inputs.end(), f);
      }
      std::for_each(graph_.outputs.begin(), graph_.outputs.end(), f);
    };
    each_number([&](size_t number) {
      if (auto p = place(number); p != none && kept[p] == none) {
        kept[p] = n + graph_.constants.size();
        graph_.constants.push_back(constants[p]);
      }
    });
    auto shift = n + graph_.constants.size() - last;
    each_number([&](size_t& number) {
      if (auto p = place(number); p != none) {
        number = kept[p];
      } else if (number >= last) {
        number += shift;
      }
    });
  }

  std::unordered_map<std::uintptr_t, size_t> numbers_;
  std::unordered_set<std::uintptr_t> constants_;
  graph graph_;
};

// placeholders returns arrays with the shapes and dtypes of others, and without elements in memory.
arrays placeholders(const arrays& others) {
  arrays all;
  for (auto& a : others) {
    all.emplace_back(a.shape(), a.dtype(), nullptr, arrays{});
  }
  return all;
}

// recordings counts the running calls of record_graph. The graph lock guards it.
int recordings = 0;

// record_graph returns the graph that f builds for traced arguments.
graph record_graph(const mlxg::function& f, const arrays& traced) {
  struct count {
    count() { recordings++; }
    ~count() { recordings--; }
  } counted;
  auto g = recorder(traced, f(traced)).take();
  launched -= g.launches;
  return g;
}

// is_one reports whether a cotangent is a float32 scalar that has been computed and is 1.
bool is_one(const mx::array& cotangent) {
  auto a = mlxg::argument_of(cotangent);
  return a.ndim() == 0 && a.dtype() == mx::float32 && mlxg::available(a) && *a.data<float>() == 1;
}

// first_of returns the first n arrays of a list.
arrays first_of(arrays all, size_t n) {
  all.erase(all.begin() + std::min(n, all.size()), all.end());
  return all;
}

// stopped stops the gradient at arrays that belong to a transform.
arrays stopped(arrays all) {
  for (auto& a : all) {
    if (a.is_tracer()) {
      a = mx::stop_gradient(a, mlxg::stream_of(a));
    }
  }
  return all;
}

// recipe is a function and its vjp. Only the vjp reads the hidden outputs, which follow the visible ones. It receives
// the cotangents of the visible outputs. It is recorded at its first use, separately for each list of arguments whose
// gradients are needed, and for a first cotangent of 1, which the function by_go may read.
struct recipe {
  graph forward;
  size_t visible;
  mlxg::vjp_function by_go;
  std::map<std::vector<size_t>, graph> backward[2];  // by the arguments; the second for a first cotangent of 1

  // vjp returns the gradients of the arguments with the numbers in `wanted`.
  arrays vjp(
      const arrays& primals, const arrays& cotangents, const arrays& outputs, const std::vector<size_t>& wanted) {
    arrays all;
    all.reserve(primals.size() + visible + outputs.size());
    all.insert(all.end(), primals.begin(), primals.end());
    all.insert(all.end(), cotangents.begin(), cotangents.begin() + visible);
    all.insert(all.end(), outputs.begin(), outputs.end());
    bool one = is_one(cotangents[0]);
    auto recorded = backward[one].find(wanted);
    if (recorded == backward[one].end()) {
      auto of_all = [&](const arrays& a) {
        auto p = a.begin() + primals.size(), c = p + visible;
        auto gradients = by_go({a.begin(), p}, {p, c}, {c, a.end()});
        arrays selected;
        for (auto n : wanted) {
          selected.push_back(gradients.at(n));
        }
        return selected;
      };
      auto traced = placeholders(all);
      if (one) {
        traced[primals.size()] = cotangents[0];
      }
      recorded = backward[one].emplace(wanted, record_graph(of_all, traced)).first;
    }
    return recorded->second.call(all);
  }
};

// custom_vjp returns the function of a recipe, differentiated by its vjp, as nodes of MLX.
arrays custom_vjp(const std::shared_ptr<recipe>& r, const arrays& arguments) {
  return mlxg::custom_vjp(
      [r](const arrays& a) { return r->forward.call(a); },
      [r](const arrays& p, const arrays& c, const arrays& o) {
        std::vector<size_t> every(p.size());
        std::iota(every.begin(), every.end(), 0);
        return r->vjp(p, c, o, every);
      },
      arguments);
}

// vmap_recipe maps a recipe over axes of its arguments.
std::pair<arrays, std::vector<int>> vmap_recipe(
    const std::shared_ptr<recipe>& r, const arrays& arguments, const std::vector<int>& axes) {
  auto mapped = mlxg::vmap_of([r](const arrays& a) { return custom_vjp(r, a); }, axes)(arguments);
  return {mapped, std::vector<int>(mapped.size(), 0)};
}

// differentiable wraps the primitive of a recipe whose forward graph is one node, and replaces its vjp.
class differentiable : public mlxg::wrapper {
 public:
  // places[i] is the position of argument i in the node's inputs.
  differentiable(std::shared_ptr<recipe> r, std::vector<size_t> places)
      : wrapper(r->forward.nodes[0].primitive), r_(std::move(r)), places_(std::move(places)) {}

  arrays vjp(const arrays& primals, const arrays& cotangents, const std::vector<int>& argnums, const arrays& outputs)
      override {
    std::vector<size_t> wanted;
    wanted.reserve(argnums.size());
    for (size_t n : argnums) {
      wanted.push_back(std::find(places_.begin(), places_.end(), n) - places_.begin());
    }
    return r_->vjp(arguments_of(primals), cotangents, outputs, wanted);
  }

  std::pair<arrays, std::vector<int>> vmap(const arrays& inputs, const std::vector<int>& axes) override {
    std::vector<int> own;
    for (auto p : places_) {
      own.push_back(axes[p]);
    }
    return vmap_recipe(r_, arguments_of(inputs), own);
  }

 private:
  arrays arguments_of(const arrays& inputs) const {
    arrays all;
    all.reserve(places_.size());
    for (auto p : places_) {
      all.push_back(inputs[p]);
    }
    return all;
  }

  std::shared_ptr<recipe> r_;
  std::vector<size_t> places_;
};

// visible_outputs forwards the visible outputs of a differentiable node. Its inputs are all outputs. For a hidden
// output, MLX would add zeros as the cotangent, which are several nodes. The cotangent here is a placeholder.
class visible_outputs : public mlxg::forwarder {
 public:
  visible_outputs(mx::Stream s, size_t n) : forwarder(s, 0), n_(n) {}

  arrays vjp(const arrays& primals, const arrays& cotangents, const std::vector<int>& argnums, const arrays&) override {
    arrays all;
    all.reserve(argnums.size());
    for (size_t n : argnums) {
      all.push_back(n < n_ ? cotangents[n] : mx::array(primals[n].shape(), primals[n].dtype(), nullptr, arrays{}));
    }
    return all;
  }

  arrays jvp(const arrays& primals, const arrays& tangents, const std::vector<int>& argnums) override {
    arrays all;
    for (size_t i = 0; i < n_; i++) {
      auto found = std::find(argnums.begin(), argnums.end(), i);
      all.push_back(found == argnums.end() ? mx::zeros_like(primals[i], stream()) : tangents[found - argnums.begin()]);
    }
    return all;
  }

  std::pair<arrays, std::vector<int>> vmap(const arrays& inputs, const std::vector<int>& axes) override {
    return {first_of(inputs, n_), {axes.begin(), axes.begin() + n_}};
  }

 private:
  size_t n_;
};

// differentiable_graph is a node behind the forward graph of a recipe. Its inputs are the n arguments and the visible
// outputs of the graph, and it forwards these outputs. No gradient flows through the graph. The node does not refer to
// the hidden outputs, so a node of the vjp may take the memory of one that nothing else reads.
class differentiable_graph : public mlxg::forwarder {
 public:
  differentiable_graph(mx::Stream s, std::shared_ptr<recipe> r, size_t n, const arrays& outputs)
      : forwarder(s, n), r_(std::move(r)), visible_(outputs[0].id()) {
    for (size_t i = r_->visible; i < outputs.size(); i++) {
      hidden_.push_back(mlxg::node_of(outputs[i]));
    }
  }

  arrays vjp(const arrays& primals, const arrays& cotangents, const std::vector<int>& argnums, const arrays&) override {
    arrays arguments(primals.begin(), primals.begin() + first());
    return r_->vjp(arguments, cotangents, outputs_of(primals), {argnums.begin(), argnums.end()});
  }

  arrays jvp(const arrays& primals, const arrays& tangents, const std::vector<int>& argnums) override {
    arrays moving, own;
    std::vector<size_t> places;
    for (size_t i = 0; i < argnums.size(); i++) {
      if (size_t n = argnums[i]; n < first()) {
        places.push_back(n);
        moving.push_back(primals[n]);
        own.push_back(tangents[i]);
      }
    }
    auto f = [&](const arrays& traced) {
      arrays all(primals.begin(), primals.begin() + first());
      for (size_t i = 0; i < places.size(); i++) {
        all[places[i]] = traced[i];
      }
      return first_of(r_->forward.call(all), r_->visible);
    };
    return mx::jvp(f, moving, own).second;
  }

  std::pair<arrays, std::vector<int>> vmap(const arrays& inputs, const std::vector<int>& axes) override {
    auto [mapped, places] =
        vmap_recipe(r_, {inputs.begin(), inputs.begin() + first()}, {axes.begin(), axes.begin() + first()});
    return {first_of(std::move(mapped), r_->visible), {places.begin(), places.begin() + r_->visible}};
  }

 private:
  // outputs_of returns all outputs of the graph. If a transform has copied this node to another graph, it adds the
  // forward graph again.
  arrays outputs_of(const arrays& primals) const {
    arrays all(primals.begin() + first(), primals.end());
    for (auto& node : hidden_) {
      mlxg::with_node(node, [&](const mx::array& a) { all.push_back(a); });
    }
    if (all.size() < r_->forward.outputs.size() || all[0].id() != visible_) {
      return r_->forward.call(stopped({primals.begin(), primals.begin() + first()}));
    }
    return all;
  }

  std::shared_ptr<recipe> r_;
  std::uintptr_t visible_;  // the id of the first visible output
  std::vector<std::weak_ptr<void>> hidden_;
};

// holds_hidden reports whether the nodes of the first n outputs of a graph hold all outputs: as operands, or as outputs
// of the same node. The graph itself holds its constants.
bool holds_hidden(const graph& g, size_t n, size_t arguments) {
  const size_t first_output = arguments + g.constants.size();
  size_t number = first_output;
  for (auto& node : g.nodes) {
    number += node.shapes.size();
  }
  std::unordered_set<size_t> held(g.outputs.begin(), g.outputs.begin() + n);
  for (auto node = g.nodes.rbegin(); node != g.nodes.rend(); ++node) {
    auto first = number -= node->shapes.size();
    auto end = first + node->shapes.size();
    if (std::any_of(held.begin(), held.end(), [=](size_t i) { return i >= first && i < end; })) {
      held.insert(node->inputs.begin(), node->inputs.end());
      for (size_t i = first; i < end; i++) {
        held.insert(i);
      }
    }
  }
  return std::all_of(g.outputs.begin(), g.outputs.end(), [&](size_t o) {
    return (o >= arguments && o < first_output) || held.count(o);
  });
}

// places_of returns the positions of n arguments in the inputs of a graph's node. It returns nothing unless the graph
// is one node that has every argument as an input once and whose outputs are the graph's.
std::optional<std::vector<size_t>> places_of(const graph& g, size_t n) {
  if (g.nodes.size() != 1) {
    return std::nullopt;
  }
  auto& node = g.nodes[0];
  auto is_empty = [](auto& shape) { return std::find(shape.begin(), shape.end(), 0) != shape.end(); };
  if (g.outputs.size() != node.shapes.size() || std::any_of(node.shapes.begin(), node.shapes.end(), is_empty)) {
    return std::nullopt;
  }
  for (size_t i = 0; i < g.outputs.size(); i++) {
    if (g.outputs[i] != n + g.constants.size() + i) {
      return std::nullopt;
    }
  }
  std::vector<size_t> places;
  auto& in = node.inputs;
  for (size_t i = 0; i < n; i++) {
    if (std::count(in.begin(), in.end(), i) != 1) {
      return std::nullopt;
    }
    places.push_back(std::find(in.begin(), in.end(), i) - in.begin());
  }
  return places;
}

// recorded is a recipe with the primitives of the nodes that give its forward graph a gradient.
class recorded {
 public:
  recorded(std::shared_ptr<recipe> r, const arrays& arguments) : r_(std::move(r)) {
    const size_t n = arguments.size();
    auto& f = r_->forward;
    if (auto places = places_of(f, n)) {
      one_node_ = f;
      one_node_->nodes[0].primitive = std::make_shared<differentiable>(r_, *places);
      if (r_->visible < f.outputs.size()) {
        last_ = std::make_shared<visible_outputs>(f.nodes[0].primitive->stream(), r_->visible);
      }
    } else if (r_->visible == f.outputs.size() || !holds_hidden(f, r_->visible, n)) {
      custom_vjp_ = record_graph([&](const arrays& a) { return custom_vjp(r_, a); }, placeholders(arguments));
    }
  }

  // call adds the nodes for other arguments and returns the visible outputs.
  arrays call(arrays arguments) const {
    bool traced = std::any_of(arguments.begin(), arguments.end(), [](auto& a) { return a.is_tracer(); });
    if (!traced && recordings == 0) {  // no transform needs the gradient
      return first_of(r_->forward.call(arguments), r_->visible);
    }
    if (one_node_) {
      auto outputs = one_node_->call(arguments);
      return last_ ? forwarded(last_, outputs, outputs) : outputs;
    }
    if (custom_vjp_) {
      return first_of(custom_vjp_->call(arguments), r_->visible);
    }
    auto outputs = r_->forward.call(stopped(arguments));
    auto s = *static_cast<mx::Stream*>(mlxg_real_stream());
    auto last = std::make_shared<differentiable_graph>(s, r_, arguments.size(), outputs);
    arguments.insert(arguments.end(), outputs.begin(), outputs.begin() + r_->visible);
    return forwarded(std::move(last), std::move(arguments), outputs);
  }

 private:
  // forwarded adds the last node.
  arrays forwarded(std::shared_ptr<mx::Primitive> last, arrays inputs, const arrays& outputs) const {
    if (r_->visible == 1) {
      return {mx::array(outputs[0].shape(), outputs[0].dtype(), std::move(last), std::move(inputs))};
    }
    std::vector<mx::Shape> shapes;
    std::vector<mx::Dtype> dtypes;
    for (size_t i = 0; i < r_->visible; i++) {
      shapes.push_back(outputs[i].shape());
      dtypes.push_back(outputs[i].dtype());
    }
    return mx::array::make_arrays(std::move(shapes), dtypes, last, inputs);
  }

  std::shared_ptr<recipe> r_;
  std::optional<graph> one_node_;  // the forward graph, if it is one node, with a gradient
  std::optional<graph> custom_vjp_;
  std::shared_ptr<mx::Primitive> last_;  // behind one_node_, if it has hidden outputs
};

using signature = std::vector<uint64_t>;

// signature_of returns everything that the graphs of a recipe may depend on.
signature signature_of(uint64_t id, const arrays& arguments) {
  signature s;
  s.reserve(2 + 6 * arguments.size());
  s.push_back(id);
  s.push_back(static_cast<mx::Stream*>(mlxg_stream().ctx)->index);
  for (auto& a : arguments) {
    s.push_back(static_cast<uint64_t>(a.dtype().val()) << 32 | a.ndim());
    s.insert(s.end(), a.shape().begin(), a.shape().end());
  }
  return s;
}

struct hash {
  size_t operator()(const signature& s) const {
    size_t h = 0;
    for (auto v : s) {
      h = (h ^ v) * 0x9e3779b97f4a7c15;
      h ^= h >> 32;
    }
    return h;
  }
};

// recipes holds recorded recipes by signature. The graph lock guards it. It is never destroyed, since graphs may
// outlive static objects.
auto& recipes() {
  static auto& all = *new std::unordered_map<signature, recorded, hash>;
  return all;
}

}  // namespace

extern "C" {

uint64_t mlxg_recipe_launches(void) {
  return launched;
}

mlxg_results mlxg_recipe_apply(uint64_t id, const uintptr_t* args, size_t n) {
  mlxg::guard g;
  if (mlxg::has_ended()) {
    return mlxg::no_results(mlxg::error_text(MLXG_SHUT_DOWN));
  }
  return mlxg::with_results([&]() -> arrays {
    auto arguments = mlxg::arrays_of(args, n);
    auto& all = recipes();
    auto found = mlxg::exporting() ? all.end() : all.find(signature_of(id, arguments));
    return found == all.end() ? arrays{} : found->second.call(std::move(arguments));
  });
}

mlxg_results mlxg_recipe_record(
    uint64_t id, uintptr_t fun, size_t visible, uintptr_t vjp, const uintptr_t* args, size_t n) {
  return mlxg::with_graph_lock([&] {
    auto f = mlxg::function_of(fun);
    auto by_go = mlxg::vjp_function_of(vjp);
    auto arguments = mlxg::arrays_of(args, n);
    if (mlxg::exporting()) {
      auto rule = [=](const arrays& p, const arrays& c, const arrays& o) { return by_go(p, first_of(c, visible), o); };
      return first_of(mlxg::custom_vjp(f, rule, arguments), visible);
    }
    auto g = record_graph(f, placeholders(arguments));
    visible = std::min(visible, g.outputs.size());
    auto r = std::make_shared<recipe>(std::move(g), visible, std::move(by_go));
    constexpr size_t most = 1024;
    if (recipes().size() >= most) {
      recipes().clear();
    }
    auto [entry, is_new] = recipes().insert_or_assign(signature_of(id, arguments), recorded(std::move(r), arguments));
    return entry->second.call(std::move(arguments));
  });
}

}  // extern "C"
