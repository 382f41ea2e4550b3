// Recipes: differentiable operations whose graphs are recorded once per signature and then added again for other
// arrays, without a call of Go.
#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <memory>
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
#include "mlxg_primitive.h"
#include "mlxg_transforms.h"

namespace mx = mlx::core;

using mlxg::arrays;

namespace {

// The number of launches that recipes have added, less those of their recordings, which Go counts.
std::atomic<uint64_t> launched = 0;

bool is_launch(const mx::Primitive& p) {
  if (auto w = dynamic_cast<const mlxg::wrapper*>(&p)) {
    return is_launch(*w->wrapped());
  }
  auto own = dynamic_cast<const mlxg::opaque*>(&p);
  return own ? own->is_launch() : std::string_view(p.name()) == "CustomKernel";
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
  size_t launches = 0;  // number of the nodes that launch a kernel

  // call adds the nodes for other arguments, which `all` holds. The nodes share the primitives, as do the calls of a
  // compiled function.
  arrays call(arrays all) const {
    launched += launches;
    all.reserve(all.size() + constants.size() + 2 * nodes.size());
    all.insert(all.end(), constants.begin(), constants.end());
    for (auto& n : nodes) {
      arrays in;
      in.reserve(n.inputs.size());
      for (auto i : n.inputs) {
        in.push_back(all[i]);
      }
      if (n.shapes.size() == 1) {
        all.emplace_back(n.shapes[0], n.dtypes[0], n.primitive, std::move(in));
      } else {
        auto outs = mx::array::make_arrays(n.shapes, n.dtypes, n.primitive, in);
        std::move(outs.begin(), outs.end(), std::back_inserter(all));
      }
    }
    arrays results;
    results.reserve(outputs.size());
    for (auto o : outputs) {
      results.push_back(all[o]);
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
    if (a.nbytes() > most_bytes || !a.siblings().empty() || is_launch(a.primitive()) ||
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
    graph_.launches += is_launch(*n.primitive);
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
      if (bound.size() > 1 && is_launch(*node.primitive)) {
        std::erase_if(node.inputs, [&](auto number) { return number >= n && number < last; });
        node.inputs.push_back(count + keepers.size());
        keepers.push_back(mlxg::keeper_of(bound));
        node.primitive = mlxg::bound_launch(std::move(node.primitive), std::move(bound));
      }
    }
    constants.insert(constants.end(), keepers.begin(), keepers.end());
    renumber(n, last, count, std::move(constants));
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

// record_graph returns the graph that f builds for traced arguments.
graph record_graph(const mlxg::function& f, const arrays& traced) {
  auto g = recorder(traced, f(traced)).take();
  launched -= g.launches;
  return g;
}

// is_one reports whether a cotangent is a float32 scalar that has been computed and is 1.
bool is_one(const mx::array& cotangent) {
  auto a = mlxg::argument_of(cotangent);
  return a.ndim() == 0 && a.dtype() == mx::float32 && mlxg::available(a) && *a.data<float>() == 1;
}

// recipe is a function and its vjp. The vjp is recorded at its first use, separately for a first cotangent of 1, which
// the function by_go may read.
struct recipe {
  graph forward;
  mlxg::vjp_function by_go;
  std::unique_ptr<graph> backward, backward_of_one;

  arrays vjp(const arrays& primals, const arrays& cotangents, const arrays& outputs) {
    arrays all;
    all.reserve(primals.size() + cotangents.size() + outputs.size());
    for (auto part : {&primals, &cotangents, &outputs}) {
      all.insert(all.end(), part->begin(), part->end());
    }
    bool one = is_one(cotangents[0]);
    auto& recorded = one ? backward_of_one : backward;
    if (!recorded) {
      auto of_all = [&](const arrays& a) {
        auto p = a.begin() + primals.size(), c = p + cotangents.size();
        return by_go({a.begin(), p}, {p, c}, {c, a.end()});
      };
      auto traced = placeholders(all);
      if (one) {
        traced[primals.size()] = cotangents[0];
      }
      recorded = std::make_unique<graph>(record_graph(of_all, traced));
    }
    return recorded->call(std::move(all));
  }
};

// custom_vjp returns the function of a recipe, differentiated by its vjp, as nodes of MLX.
arrays custom_vjp(const std::shared_ptr<recipe>& r, const arrays& arguments) {
  return mlxg::custom_vjp(
      [r](const arrays& a) { return r->forward.call(a); },
      [r](const arrays& p, const arrays& c, const arrays& o) { return r->vjp(p, c, o); }, arguments);
}

// differentiable wraps the primitive of a recipe whose forward graph is one node, and replaces its vjp. It spares the
// nodes that custom_vjp adds.
class differentiable : public mlxg::wrapper {
 public:
  // places[i] is the position of argument i in the node's inputs.
  differentiable(std::shared_ptr<recipe> r, std::vector<size_t> places)
      : wrapper(r->forward.nodes[0].primitive), r_(std::move(r)), places_(std::move(places)) {}

  arrays vjp(const arrays& primals, const arrays& cotangents, const std::vector<int>& argnums, const arrays& outputs)
      override {
    auto gradients = r_->vjp(arguments_of(primals), cotangents, outputs);
    arrays selected;
    for (size_t n : argnums) {
      selected.push_back(gradients.at(std::find(places_.begin(), places_.end(), n) - places_.begin()));
    }
    return selected;
  }

  std::pair<arrays, std::vector<int>> vmap(const arrays& inputs, const std::vector<int>& axes) override {
    std::vector<int> own;
    for (auto p : places_) {
      own.push_back(axes[p]);
    }
    auto mapped = mlxg::vmap_of([r = r_](const arrays& a) { return custom_vjp(r, a); }, own)(arguments_of(inputs));
    return {mapped, std::vector<int>(mapped.size(), 0)};
  }

 private:
  arrays arguments_of(const arrays& inputs) const {
    arrays all;
    for (auto p : places_) {
      all.push_back(inputs[p]);
    }
    return all;
  }

  std::shared_ptr<recipe> r_;
  std::vector<size_t> places_;
};

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

// with_gradient returns the graph that a call of a recipe adds.
graph with_gradient(std::shared_ptr<recipe> r, const arrays& arguments) {
  if (auto places = places_of(r->forward, arguments.size())) {
    graph g = r->forward;
    g.nodes[0].primitive = std::make_shared<differentiable>(std::move(r), *places);
    return g;
  }
  // Recording the nodes of custom_vjp spares its calls the copies of functions.
  return record_graph([&](const arrays& a) { return custom_vjp(r, a); }, placeholders(arguments));
}

using signature = std::vector<uint64_t>;

// signature_of returns everything that the graphs of a recipe may depend on.
signature signature_of(uint64_t id, const arrays& arguments) {
  signature s{id, static_cast<uint64_t>(static_cast<mx::Stream*>(mlxg_stream().ctx)->index)};
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

// recipes holds the graphs of recipes by signature. The graph lock guards it. It is never destroyed, since graphs may
// outlive static objects.
auto& recipes() {
  static auto& all = *new std::unordered_map<signature, graph, hash>;
  return all;
}

}  // namespace

extern "C" {

uint64_t mlxg_recipe_launches(void) {
  return launched;
}

mlxg_results mlxg_recipe_apply(uint64_t id, const uintptr_t* args, size_t n) {
  return mlxg::with_graph_lock([&]() -> arrays {
    auto arguments = mlxg::arrays_of(args, n);
    auto& all = recipes();
    auto found = mlxg::exporting() ? all.end() : all.find(signature_of(id, arguments));
    return found == all.end() ? arrays{} : found->second.call(std::move(arguments));
  });
}

mlxg_results mlxg_recipe_record(uint64_t id, uintptr_t fun, uintptr_t vjp, const uintptr_t* args, size_t n) {
  return mlxg::with_graph_lock([&] {
    auto f = mlxg::function_of(fun);
    auto by_go = mlxg::vjp_function_of(vjp);
    auto arguments = mlxg::arrays_of(args, n);
    if (mlxg::exporting()) {
      return mlxg::custom_vjp(f, by_go, arguments);
    }
    auto r = std::make_shared<recipe>(record_graph(f, placeholders(arguments)), std::move(by_go));
    constexpr size_t most = 1024;
    if (recipes().size() >= most) {
      recipes().clear();
    }
    auto& g = recipes()[signature_of(id, arguments)] = with_gradient(std::move(r), arguments);
    return g.call(std::move(arguments));
  });
}

}  // extern "C"
