// Repair of signal handlers that lack SA_ONSTACK.
#include <csignal>

#include "mlx/backend/cuda/cuda.h"
#include "mlxg_internal.h"

namespace {

// off_stack reports whether a handler is installed without SA_ONSTACK. Goroutines have small stacks and Go handles
// signals on a separate one; Go ends the process if its handler runs elsewhere.
bool off_stack(int signal, struct sigaction& action) {
  return sigaction(signal, nullptr, &action) == 0 && !(action.sa_flags & SA_ONSTACK) && action.sa_handler != SIG_DFL &&
         action.sa_handler != SIG_IGN;
}

// add_onstack adds SA_ONSTACK to all handlers.
void add_onstack() {
  struct sigaction action;
  if (!off_stack(SIGINT, action) && !off_stack(SIGTERM, action)) {
    return;  // CUDA's compiler changes these two like all others
  }
  for (int signal = 1; signal < NSIG; signal++) {
    if (off_stack(signal, action)) {
      action.sa_flags |= SA_ONSTACK;
      sigaction(signal, &action, nullptr);
    }
  }
}

}  // namespace

namespace mlxg {

void restore_signal_stacks() {
  if (mlx::core::cu::is_available()) {
    add_onstack();
  }
}

}  // namespace mlxg
