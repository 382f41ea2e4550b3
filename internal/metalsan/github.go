package metalsan

import (
	"fmt"
	"os"
	"strings"
)

// onGitHub reports whether a GitHub runner runs the command. The text then contains workflow commands, which annotate
// the lines of the findings.
func onGitHub() bool { return os.Getenv("GITHUB_ACTIONS") == "true" }

// annotation returns a workflow command of GitHub. level is error, warning or notice.
func annotation(level, file string, line, column int, title, message string) string {
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	text := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	return fmt.Sprintf("::%s file=%s,line=%d,col=%d,title=%s::%s\n", level, property.Replace(file), max(line, 1),
		max(column, 1), property.Replace(title), text.Replace(message))
}
