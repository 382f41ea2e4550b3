// Package manual checks the help of a command and makes its man pages. Only tests import it, so that the commands do not
// contain the generator.
package manual

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/stretchr/testify/require"
)

// commands returns the command and its verbs.
func commands(root *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{root}
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			list = append(list, c)
		}
	}
	return list
}

// RequireExamples requires a description and an example in each help text.
func RequireExamples(t *testing.T, root *cobra.Command) {
	for _, c := range commands(root) {
		require.NotEmpty(t, c.Short, c.CommandPath())
		require.Contains(t, c.Example, "  "+c.CommandPath(), "the help of %q has no example", c.CommandPath())
	}
}

// RequireCurrent compares the man pages in a folder with those of the command, or writes them if update is set.
func RequireCurrent(t *testing.T, root *cobra.Command, folder string, update bool) {
	for _, c := range commands(root) {
		// The date is constant, since a page must not change from day to day.
		date := time.Unix(0, 0).UTC()
		header := &doc.GenManHeader{Section: "1", Source: "mlxgrad", Manual: "mlxgrad", Date: &date}
		c.DisableAutoGenTag = true // it has the date
		var page bytes.Buffer
		require.NoError(t, doc.GenMan(c, header, &page))
		file := filepath.Join(folder, nameOf(c)+".1")
		if update {
			require.NoError(t, os.WriteFile(file, page.Bytes(), 0o644))
		}
		current, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, page.String(), string(current), "%s is out of date: run the test with -update", file)
	}
}

func nameOf(c *cobra.Command) string {
	if c.HasParent() {
		return nameOf(c.Parent()) + "-" + c.Name()
	}
	return c.Name()
}
