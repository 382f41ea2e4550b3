package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// verb returns a command with one verb, "go", that returns an error.
func verb(err error) *cobra.Command {
	root := &cobra.Command{Use: "tool", RunE: func(*cobra.Command, []string) error { return errors.New("no verb given") }}
	c := &cobra.Command{Use: "go", Args: NoArgs}
	var one string
	var several []string
	Choice(c, &one, "one", "a word", []string{"a", "b"})
	List(c, &several, "several", "words", []string{"a", "b"})
	root.AddCommand(Verb(c, nil, func(s Streams) error {
		_, _ = fmt.Fprintf(s.Out, "%s %v", one, several)
		return err
	}))
	return root
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args   []string
		err    error
		code   int
		stderr string
	}{
		{args: []string{"go"}},
		{[]string{"go"}, ErrFailed, 1, ""},
		{[]string{"go"}, fmt.Errorf("row: %w", ErrInterrupted), 130, ""},
		{[]string{"go"}, errors.New("disk full"), 1, "tool: disk full\n"},
		{[]string{"go", "--bad"}, nil, 2, "tool: unknown flag: --bad\nRun \"tool go --help\" for usage.\n"},
		{[]string{"go", "x"}, nil, 2, "tool: unexpected argument \"x\"\nRun \"tool go --help\" for usage.\n"},
		{[]string{"stop"}, nil, 2, "tool: unknown command \"stop\" for \"tool\"\nRun \"tool --help\" for usage.\n"},
		{nil, nil, 2, "tool: no verb given\nRun \"tool --help\" for usage.\n"},
		{[]string{"--help"}, nil, 0, ""},
	} {
		var stderr bytes.Buffer
		require.Equal(t, c.code, Main(verb(c.err), append([]string{}, c.args...), io.Discard, &stderr), c.args)
		require.Equal(t, c.stderr, stderr.String())
	}
}

func TestChoices(t *testing.T) {
	for args, want := range map[[2]string]string{
		{}:                         "a []",
		{"--one=b"}:                "b []",
		{"--several=b,a"}:          "a [b a]",
		{"--several=b", "--one=b"}: "b [b]",
	} {
		var out bytes.Buffer
		list := []string{"go"}
		for _, arg := range args {
			if arg != "" {
				list = append(list, arg)
			}
		}
		require.Equal(t, 0, Main(verb(nil), list, &out, io.Discard))
		require.Equal(t, want, out.String())
	}
	var stderr bytes.Buffer
	require.Equal(t, ExitUsage, Main(verb(nil), []string{"go", "--several", "a,c"}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), `invalid argument "a,c" for "--several" flag: "c" is none of a, b`)
}

func TestColors(t *testing.T) {
	var screen bytes.Buffer
	const text = "FAIL softmax\nok  a\n3 passed, 0 failed\n12 passed, 2 failed\n"
	n, err := colored{&screen}.Write([]byte(text))
	require.NoError(t, err)
	require.Equal(t, len(text), n)
	require.Equal(t, red+"FAIL"+plain+" softmax\n"+green+"ok"+plain+"  a\n"+green+"3 passed"+plain+", 0 failed\n"+
		green+"12 passed"+plain+", "+red+"2 failed"+plain+"\n", screen.String())

	// Pipes and files have no colors.
	file, err := os.Create(t.TempDir() + "/log")
	require.NoError(t, err)
	defer file.Close()
	require.Equal(t, io.Writer(file), Colored(file))
	require.Equal(t, io.Writer(&screen), Colored(&screen))
}
