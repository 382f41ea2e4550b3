// Signal handlers that others have spoiled.
#include <csignal>

#include "mlx/backend/cuda/cuda.h"
#include "mlxg_internal.h"

namespace {

// Go has its goroutines on small stacks and handles signals on a stack of its own. A handler that
// is not to be run there has been put back without its flags: Go would end the process.
bool off_stack(int signal, struct sigaction& action) {
  return sigaction(signal, nullptr, &action) == 0 && !(action.sa_flags & SA_ONSTACK) && action.sa_handler != SIG_DFL &&
         action.sa_handler != SIG_IGN;
}

// mend has all handlers run on the stack for them.
void mend() {
  struct sigaction action;
  if (!off_stack(SIGINT, action) && !off_stack(SIGTERM, action)) {
    return;  // one stands for all, since this is asked often
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

void mend_signals() {
  if (mlx::core::cu::is_available()) {
    mend();
  }
}

}  // namespace mlxg
