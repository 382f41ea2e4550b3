// Recipes: differentiable operations whose graphs are recorded once per signature and then added again for other
// arrays, without a call of Go.
#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlxg_primitive.h"
#include "mlxg_transforms.h"

namespace mx = mlx::core;

using mlxg::arrays;

namespace {

// The number of launches that recipes have added, less those of their recordings, which Go counts.
std::atomic<uint64_t> launched = 0;

bool is_launch(const mx::Primitive& p) {
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

  // call adds the nodes for other arguments. The nodes share the primitives, as do the calls of a compiled function.
  arrays call(const arrays& arguments) const {
    launched += launches;
    arrays all;
    all.reserve(arguments.size() + constants.size() + 2 * nodes.size());
    all.insert(all.end(), arguments.begin(), arguments.end());
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
        all.insert(all.end(), outs.begin(), outs.end());
      }
    }
    arrays results;
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
        numbers_.emplace(a.id(), numbers_.size());
        graph_.constants.push_back(a);
      }
    });
    visit(outputs, [&](const mx::array& a) { add(a); });
    for (auto& o : outputs) {
      graph_.outputs.push_back(numbers_.at(o.id()));
    }
  }

  graph take() { return std::move(graph_); }

 private:
  // A computed array may still have its node.
  static bool is_constant(const mx::array& a) {
    return !a.has_primitive() || a.status() != mx::array::Status::unscheduled;
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
          for (auto& in : is_constant(a) ? arrays{} : a.inputs()) {
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

  std::unordered_map<std::uintptr_t, size_t> numbers_;
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

graph record_graph(const mlxg::function& f, const arrays& arguments) {
  auto traced = placeholders(arguments);
  auto g = recorder(traced, f(traced)).take();
  launched -= g.launches;
  return g;
}

// recipe is a function and its vjp. The vjp is recorded at its first use.
struct recipe {
  graph forward;
  mlxg::vjp_function by_go;
  std::unique_ptr<graph> backward;

  arrays vjp(const arrays& primals, const arrays& cotangents, const arrays& outputs) {
    arrays all = primals;
    all.insert(all.end(), cotangents.begin(), cotangents.end());
    all.insert(all.end(), outputs.begin(), outputs.end());
    if (!backward) {
      auto of_all = [&](const arrays& a) {
        auto p = a.begin() + primals.size(), c = p + cotangents.size();
        return by_go({a.begin(), p}, {p, c}, {c, a.end()});
      };
      backward = std::make_unique<graph>(record_graph(of_all, all));
    }
    return backward->call(all);
  }
};

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

// recipes holds the recipes by signature. The graph lock guards it. It is never destroyed, since graphs may outlive
// static objects.
auto& recipes() {
  static auto& all = *new std::unordered_map<signature, std::shared_ptr<recipe>, hash>;
  return all;
}

arrays apply_recipe(std::shared_ptr<recipe> r, const arrays& arguments) {
  return mlxg::custom_vjp(
      [r](const arrays& a) { return r->forward.call(a); },
      [r](const arrays& p, const arrays& c, const arrays& o) { return r->vjp(p, c, o); }, arguments);
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
    return found == all.end() ? arrays{} : apply_recipe(found->second, arguments);
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
    auto r = std::make_shared<recipe>(record_graph(f, arguments), std::move(by_go));
    constexpr size_t most = 1024;
    if (recipes().size() >= most) {
      recipes().clear();
    }
    recipes()[signature_of(id, arguments)] = r;
    return apply_recipe(r, arguments);
  });
}

}  // extern "C"
