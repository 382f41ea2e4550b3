package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mlxgrad/mlxgrad/internal/cli"
	"github.com/mlxgrad/mlxgrad/internal/ranks"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
)

// launchCommand is "mlxgrad launch".
type launchCommand struct {
	processes int
	hosts     string
	backend   string
	grace     time.Duration
	command   []string
}

func newLaunch() *cobra.Command {
	var c launchCommand
	command := &cobra.Command{
		Use:   "launch [flags] -- PROGRAM [ARGUMENT...]",
		Short: "Start the processes of a distributed program, one for each GPU or host",
		Long: `Starts a program in several processes, the ranks, and sets the environment variables from which MLX
reads their numbers and addresses. The program joins the other ranks with distributed.Init of package
mlxc/distributed. Every line of its output gets the number of the rank as prefix.

The ranks run on this machine, or on the machines of a hosts file: run the same command on each, with
the same file. Each starts the ranks whose first address is its own. There is no remote login. The
file has the format of MLX's ring, a list with the addresses of each rank:

    [["10.0.0.1:5000"], ["10.0.0.2:5000"]]

With nccl, each rank uses one GPU, in the order of CUDA_VISIBLE_DEVICES if it is set. With ring, the
ranks exchange arrays over TCP, on the CPU.

If a rank fails, the others may end by themselves within the time of --grace: with ring, their next
evaluation returns an error. Then they get SIGTERM, and after the same time SIGKILL. An interrupt or
termination signal is passed on; the second one kills the ranks.`,
		Example: `  mlxgrad launch -n 2 -- ./lm -data-parallel
  mlxgrad launch --hosts hosts.json --backend ring -- ./lm -data-parallel`,
		Args:                  cobra.ArbitraryArgs,
		DisableFlagsInUseLine: true,
	}
	f := command.Flags()
	f.SetInterspersed(false)
	f.IntVarP(&c.processes, "processes", "n", 0, "number `N` of ranks on this machine; default: one for each GPU")
	f.StringVar(&c.hosts, "hosts", "", "JSON `FILE` with the addresses of the ranks")
	f.StringVar(&c.backend, "backend", "", "MLX's `NAME` of the transport, ring or nccl; default: nccl if MLX has it, else ring")
	f.DurationVar(&c.grace, "grace", 10*time.Second, "`TIME` in which ranks may end by themselves")
	command.MarkFlagsMutuallyExclusive("processes", "hosts")
	return cli.Verb(command, c.validate, c.run)
}

// validate checks the flags.
func (c *launchCommand) validate(args []string) error {
	c.command = args
	switch b := distributed.Backend(c.backend); {
	case len(args) == 0:
		return errors.New("no program given; name it after --")
	case b != "" && b != distributed.Ring && b != distributed.NCCL:
		return fmt.Errorf("--backend is %q; it must be ring or nccl", c.backend)
	case c.processes < 0:
		return fmt.Errorf("--processes is %d; it must be positive", c.processes)
	case c.grace < 0:
		return fmt.Errorf("--grace is %v; it must not be negative", c.grace)
	}
	return nil
}

// run starts the processes.
func (c *launchCommand) run(s cli.Streams) (err error) {
	l := ranks.Launch{
		Backend: distributed.Backend(c.backend), Command: c.command, Grace: c.grace, Out: s.Out, Err: s.Err,
	}
	if l.Backend == "" {
		l.Backend = distributed.Ring
		if err := checkMLX(); err != nil {
			return err
		}
		if mlxc.CUDAAvailable() && distributed.NCCL.Available() {
			l.Backend = distributed.NCCL
		}
	}
	if l.Backend == distributed.NCCL {
		if l.GPUs, err = visibleGPUs(); err != nil {
			return err
		}
	}
	n := c.processes
	if n == 0 {
		n = max(len(l.GPUs), 1)
	}
	if c.hosts == "" {
		l.Hosts, err = ranks.LocalHosts(n)
	} else {
		l.Hosts, err = ranks.ReadHosts(c.hosts)
	}
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := l.Run(signals); err != nil {
		fmt.Fprintf(s.Err, "mlxgrad launch: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
		if errors.Is(err, ranks.ErrSignal) {
			return cli.ErrInterrupted
		}
		return cli.ErrFailed
	}
	return nil
}

// visibleGPUs returns the CUDA devices that this process may use, as CUDA_VISIBLE_DEVICES names them.
func visibleGPUs() ([]string, error) {
	if names := os.Getenv("CUDA_VISIBLE_DEVICES"); names != "" {
		return strings.Split(names, ","), nil
	}
	n, err := mlxc.GPU.Count()
	if err != nil {
		return nil, err
	}
	var all []string
	for i := range n {
		all = append(all, strconv.Itoa(i))
	}
	return all, nil
}
