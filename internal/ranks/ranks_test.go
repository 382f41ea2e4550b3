package ranks_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/ranks"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
)

// launch runs a shell script in n ranks and returns the sorted lines of their output.
func launch(t *testing.T, script string, n int, change func(*ranks.Launch)) (lines []string, err error) {
	t.Helper()
	return launchWith(t, nil, script, n, change)
}

func launchWith(
	t *testing.T, signals <-chan os.Signal, script string, n int, change func(*ranks.Launch),
) (lines []string, err error) {
	t.Helper()
	hosts, err := ranks.LocalHosts(n)
	require.NoError(t, err)
	var out bytes.Buffer
	l := ranks.Launch{
		Backend: distributed.Ring, Hosts: hosts, Command: []string{"sh", "-c", script},
		Grace: 10 * time.Second, Out: &out, Err: &out,
	}
	if change != nil {
		change(&l)
	}
	err = l.Run(signals)
	lines = strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	slices.Sort(lines)
	return lines, err
}

func TestLaunchSetsTheEnvironment(t *testing.T) {
	t.Setenv("MLX_RANK", "7") // of an outer launch
	t.Setenv("NCCL_SOCKET_IFNAME", "")
	lines, err := launch(t, `echo $MLX_RANK of $MLX_WORLD_SIZE; cat $MLX_HOSTFILE; test -d "$TMPDIR"`, 3, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"[0] 0 of 3", "[1] 1 of 3", "[2] 2 of 3"}, []string{lines[0], lines[2], lines[4]})
	require.Regexp(t, `^\[0\] \[\["127.0.0.1:\d+"\],\["127.0.0.1:\d+"\],\["127.0.0.1:\d+"\]\]$`, lines[1])

	// A single rank has no peers.
	lines, err = launch(t, `echo "<$MLX_RANK>"; printf end >&2`, 1, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"[0] <>", "[0] end"}, lines)

	nccl := func(gpus ...string) func(*ranks.Launch) {
		return func(l *ranks.Launch) { l.Backend, l.GPUs = distributed.NCCL, gpus }
	}
	t.Setenv("MLX_PTX_CACHE_DIR", "")
	const variables = `echo $MLX_RANK $MLX_WORLD_SIZE $CUDA_VISIBLE_DEVICES $NCCL_HOST_IP $NCCL_SOCKET_IFNAME ${NCCL_PORT:?} ` +
		`${MLX_PTX_CACHE_DIR#*/mlxgrad/}`
	lines, err = launch(t, variables, 2, nccl("3", "GPU-5"))
	require.NoError(t, err)
	require.Regexp(t, `^\[0\] 0 2 3 127.0.0.1 lo \d+ mlx-[\d.]+/0$`, lines[0])
	require.Regexp(t, `^\[1\] 1 2 GPU-5 127.0.0.1 lo \d+ mlx-[\d.]+/1$`, lines[1])
	_, err = launch(t, variables, 2, nccl("0"))
	require.ErrorContains(t, err, "2 ranks on this machine need a GPU each; it has 1")
}

// If a rank fails, the others end by themselves, by SIGTERM after the grace time, or by SIGKILL after twice the time.
func TestLaunchEndsAllWhenOneFails(t *testing.T) {
	short := func(l *ranks.Launch) { l.Grace = time.Second }
	begin := time.Now()
	lines, err := launch(t, `[ $MLX_RANK = 1 ] && exit 3; sleep 0.1; echo done`, 2, nil)
	require.EqualError(t, err, "rank 1: exit status 3")
	require.Equal(t, []string{"[0] done"}, lines)
	require.Less(t, time.Since(begin), 10*time.Second, "without waiting for the grace time")

	_, err = launch(t, `[ $MLX_RANK = 1 ] && kill -9 $$; sleep 60`, 2, short)
	require.EqualError(t, err, "rank 1: signal: killed\nrank 0: signal: terminated")

	_, err = launch(t, `[ $MLX_RANK = 1 ] && exit 3; trap '' TERM; sleep 60`, 2, short)
	require.EqualError(t, err, "rank 1: exit status 3\nrank 0: signal: killed")
	require.Less(t, time.Since(begin), 30*time.Second)

	_, err = launch(t, "", 2, func(l *ranks.Launch) { l.Command = []string{filepath.Join(t.TempDir(), "none")} })
	require.ErrorContains(t, err, "starting rank 0")
}

// A rank may leave a process behind that holds its output open.
func TestLaunchOfARankThatLeavesAProcess(t *testing.T) {
	lines, err := launch(t, `[ $MLX_RANK = 0 ] && sleep 4 & [ $MLX_RANK = 1 ] && sleep 3; echo done`, 2,
		func(l *ranks.Launch) { l.Grace = time.Second })
	require.NoError(t, err)
	require.Equal(t, []string{"[0] done", "[1] done"}, lines)

	begin := time.Now()
	_, err = launch(t, `sleep 60 & echo done`, 1, func(l *ranks.Launch) { l.Grace = 0 })
	require.NoError(t, err)
	require.Less(t, time.Since(begin), 30*time.Second)
}

// A rank that ignores interrupts is killed at the second one.
func TestLaunchPassesSignalsOn(t *testing.T) {
	const forever = "; while :; do sleep 0.05; done"
	for trap, want := range map[string]string{
		"echo interrupted; exit 0": "ended by a signal",
		"echo interrupted":         "ended by a signal\nrank 0: signal: killed",
	} {
		signals := make(chan os.Signal)
		ready := filepath.Join(t.TempDir(), "ready")
		go func() {
			for _, err := os.Stat(ready); err != nil; _, err = os.Stat(ready) {
				time.Sleep(10 * time.Millisecond)
			}
			signals <- os.Interrupt
			time.Sleep(time.Second)
			select {
			case signals <- os.Interrupt:
			case <-t.Context().Done():
			}
		}()
		lines, err := launchWith(t, signals, "trap '"+trap+"' INT; touch "+ready+forever, 1, nil)
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, ranks.ErrSignal)
		require.Equal(t, []string{"[0] interrupted"}, lines)
	}
}

func TestReadHosts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts.json")
	for text, want := range map[string]string{
		`{}`:                   "it must be a list",
		`[]`:                   "names no rank",
		`[["10.0.0.1:5"], []]`: "rank 1 has no address",
		`[["10.0.0.1"]]`:       `the address of rank 0 is "10.0.0.1"`,
		`[["worker:5000"]]`:    "must be an IP address and a port",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := ranks.ReadHosts(file)
		require.ErrorContains(t, err, want, text)
	}
	_, err := ranks.ReadHosts(file + ".missing")
	require.ErrorIs(t, err, os.ErrNotExist)

	require.NoError(t, os.WriteFile(file, []byte(`[["192.0.2.1:5000"], ["127.0.0.1:5001"]]`), 0o600))
	hosts, err := ranks.ReadHosts(file)
	require.NoError(t, err)
	lines, err := launch(t, "echo $MLX_RANK", 1, func(l *ranks.Launch) { l.Hosts = hosts })
	require.NoError(t, err)
	require.Equal(t, []string{"[1] 1"}, lines, "only the rank of this machine")
	_, err = launch(t, "", 1, func(l *ranks.Launch) { l.Hosts = hosts[:1] })
	require.ErrorContains(t, err, "no rank of the hosts file has an address of this machine")
}
