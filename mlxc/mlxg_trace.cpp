// Export of functions, to a file and, as a trace, to memory.
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "mlx/export.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlxg_internal.h"

namespace mx = mlx::core;

namespace {

// stripper builds graphs anew without their CustomTransforms nodes, which are what
// functions with a gradient of their own leave and MLX cannot serialize. Such a node's
// last inputs are the outputs of the function itself, so whoever reads an output of the
// node can read those instead. Existing nodes stay as they are: the caller may still
// want their gradients.
class stripper {
 public:
  std::vector<mx::array> operator()(const std::vector<mx::array>& outputs) {
    std::vector<mx::array> result;
    for (auto& o : outputs) {
      visit(o);
      result.push_back(done_.at(o.id()));
    }
    return result;
  }

 private:
  // Post-order without recursion: graphs are deep.
  void visit(const mx::array& root) {
    std::vector<mx::array> todo{root};
    while (!todo.empty()) {
      mx::array a = todo.back();
      if (done_.count(a.id())) {
        todo.pop_back();
        continue;
      }
      bool ready = true;
      for (auto& in : sources(a)) {
        if (!done_.count(in.id())) {
          todo.push_back(in);
          ready = false;
        }
      }
      if (ready) {
        finish(a);
        todo.pop_back();
      }
    }
  }

  static bool custom(const mx::array& a) {
    return a.has_primitive() && std::strcmp(a.primitive().name(), "CustomTransforms") == 0;
  }

  // sources is what a is computed from once the custom nodes are gone.
  static std::vector<mx::array> sources(const mx::array& a) {
    if (!custom(a)) {
      return a.inputs();
    }
    size_t n = a.siblings().size() + 1;
    return {a.inputs()[a.inputs().size() - n + a.sibling_position()]};
  }

  void finish(const mx::array& a) {
    if (custom(a)) {
      set(a, done_.at(sources(a)[0].id()));
      return;
    }
    bool changed = false;
    std::vector<mx::array> inputs;
    for (auto& in : a.inputs()) {
      inputs.push_back(done_.at(in.id()));
      changed = changed || inputs.back().id() != in.id();
    }
    if (!changed) {
      set(a, a);
      return;
    }
    auto outputs = a.outputs();
    std::vector<mx::Shape> shapes;
    std::vector<mx::Dtype> dtypes;
    for (auto& o : outputs) {
      shapes.push_back(o.shape());
      dtypes.push_back(o.dtype());
    }
    auto made = mx::array::make_arrays(std::move(shapes), dtypes, a.primitive_ptr(), inputs);
    for (size_t i = 0; i < outputs.size(); i++) {
      set(outputs[i], made[i]);
    }
  }

  void set(const mx::array& from, const mx::array& to) {
    kept_.push_back(from); // its id stays taken
    done_.emplace(from.id(), to);
  }

  std::unordered_map<std::uintptr_t, mx::array> done_;
  std::vector<mx::array> kept_;
};

mlxg::function stripped(uintptr_t id) {
  return [f = mlxg::function_of(id)](const mlxg::arrays& args) { return stripper{}(f(args)); };
}

} // namespace

extern "C" {

char* mlxg_export(uintptr_t id, const char* file, void** inputs, size_t n) {
  char* err = nullptr;
  try {
    mx::export_function(file, stripped(id), mlxg::arrays_of(inputs, n));
  } catch (std::exception& e) {
    err = mlxg::error_text(e.what());
  }
  return err;
}

void mlxg_nodes_free(mlxg_node* nodes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < nodes[i].n_strings; j++) {
      free(nodes[i].strings[j]);
    }
    free(nodes[i].strings);
    free(nodes[i].name);
  }
  free(nodes);
}

char* mlxg_trace(
    uintptr_t id, void** inputs, size_t n, mlxg_node** nodes, size_t* n_nodes) {
  *nodes = nullptr;
  *n_nodes = 0;
  std::vector<std::pair<std::string, std::vector<std::string>>> found;
  char* err = nullptr;
  try {
    mx::export_function(
        [&](const mx::ExportCallbackInput& item) {
          auto type = item.find("type");
          if (type == item.end() || std::get<std::string>(type->second) != "primitive") {
            return;
          }
          std::vector<std::string> strings;
          for (auto& [key, value] : item) {
            auto* state = std::get_if<std::vector<mx::StateT>>(&value);
            if (!state) {
              continue;
            }
            for (auto& x : *state) {
              if (auto* s = std::get_if<std::string>(&x)) {
                strings.push_back(*s);
              }
            }
          }
          found.emplace_back(std::get<std::string>(item.at("name")), std::move(strings));
        },
        stripped(id),
        mlxg::arrays_of(inputs, n));
  } catch (std::exception& e) {
    err = mlxg::error_text(e.what());
  }
  if (err) {
    return err;
  }
  *nodes = static_cast<mlxg_node*>(calloc(found.size() ? found.size() : 1, sizeof(mlxg_node)));
  *n_nodes = found.size();
  for (size_t i = 0; i < found.size(); i++) {
    auto& [name, strings] = found[i];
    auto& node = (*nodes)[i];
    node.name = strdup(name.c_str());
    node.n_strings = strings.size();
    node.strings = static_cast<char**>(calloc(strings.size() ? strings.size() : 1, sizeof(char*)));
    for (size_t j = 0; j < strings.size(); j++) {
      node.strings[j] = strdup(strings[j].c_str());
    }
  }
  return nullptr;
}

} // extern "C"
