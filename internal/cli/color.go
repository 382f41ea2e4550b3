package cli

import (
	"io"
	"os"
	"regexp"

	"github.com/mattn/go-isatty"
)

// Colored returns a writer that colors the verdicts of a report's text. It is w itself unless w is a terminal that
// shows colors. The environment variable NO_COLOR, set to any text, switches colors off.
func Colored(w io.Writer) io.Writer {
	file, ok := w.(*os.File)
	if !ok || !isatty.IsTerminal(file.Fd()) || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return w
	}
	return colored{w}
}

// The escape sequences of colors that are readable on dark and light backgrounds.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// verdicts are the words with a color.
var verdicts = []struct {
	pattern *regexp.Regexp
	color   string
}{
	{regexp.MustCompile(`\b(FAIL|MISSING)\b|\b[1-9]\d* (failed|errors?)\b|: error:`), red},
	{regexp.MustCompile(`(?m)^ok\b|\bok$|\b[1-9]\d* passed\b`), green},
	{regexp.MustCompile(`(?m)^missing\b|: portability:|\b[1-9]\d* portability findings?\b|(?m)^interrupted\b`), yellow},
}

type colored struct{ w io.Writer }

// Write writes p with colors. A word that is split between two calls is not colored.
func (c colored) Write(p []byte) (int, error) {
	text := p
	for _, v := range verdicts {
		text = v.pattern.ReplaceAll(text, []byte(v.color+"$0"+plain))
	}
	if _, err := c.w.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}
