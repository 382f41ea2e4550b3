// Command pagecheck opens the HTML pages of a folder in headless Chromium, at the widths of a phone and of a desktop. It
// reports errors of the browser's console, failed requests, and pages that are wider than the screen.
//
//	go -C tools run ./pagecheck [-at PATH] [-dark] [-screenshots DIR] FOLDER [PAGE...]
//
// It serves the folder at the URL path PATH, "/" by default. Without a PAGE it opens every .html file of the folder. It
// exits 1 if it finds a problem.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// widths are the viewport widths of a phone and of a desktop, in CSS pixels.
var widths = []int64{390, 1280}

func main() {
	at := flag.String("at", "/", "URL `path` of the folder")
	dark := flag.Bool("dark", false, "prefer a dark color scheme")
	screenshots := flag.String("screenshots", "", "write a PNG of each page and width to this `folder`")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: pagecheck [-at PATH] [-dark] [-screenshots DIR] FOLDER [PAGE...]")
		os.Exit(2)
	}
	problems, err := check(flag.Arg(0), flag.Args()[1:], *at, *dark, *screenshots)
	for _, p := range problems {
		fmt.Println(p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pagecheck:", err)
	}
	if err != nil || len(problems) > 0 {
		os.Exit(1)
	}
}

// check opens the pages and returns the problems.
func check(folder string, pages []string, at string, dark bool, screenshots string) (problems []string, err error) {
	if len(pages) == 0 {
		if pages, err = htmlFiles(folder); err != nil {
			return nil, err
		}
	}
	server := httptest.NewServer(http.StripPrefix(strings.TrimSuffix(at, "/"), http.FileServer(http.Dir(folder))))
	defer server.Close()

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)
	browser, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	tab, stopTab := chromedp.NewContext(browser)
	defer stopTab()
	if err := chromedp.Do(tab); err != nil {
		return nil, fmt.Errorf("starting Chromium: %w", err)
	}
	var seen problemList
	go seen.collect(chromedp.Console(tab))
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	for _, page := range pages {
		for _, width := range widths {
			found, png, err := open(tab, &seen, server.URL+at+page, width, scheme)
			if err != nil {
				return problems, fmt.Errorf("%s, %d pixels: %w", page, width, err)
			}
			for _, f := range found {
				problems = append(problems, fmt.Sprintf("%s, %d pixels: %s", page, width, f))
			}
			if screenshots != "" {
				name := strings.ReplaceAll(strings.TrimSuffix(page, ".html"), "/", "-")
				path := filepath.Join(screenshots, fmt.Sprintf("%s-%d-%s.png", name, width, scheme))
				if err := os.WriteFile(path, png, 0o644); err != nil {
					return problems, err
				}
			}
		}
	}
	fmt.Printf("%d pages at %d widths: %d problems\n", len(pages), len(widths), len(problems))
	return problems, nil
}

func htmlFiles(folder string) (pages []string, err error) {
	err = fs.WalkDir(os.DirFS(folder), ".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".html") {
			pages = append(pages, path)
		}
		return err
	})
	if err == nil && len(pages) == 0 {
		err = errors.New("the folder has no .html file")
	}
	return pages, err
}

// open loads a page and returns its problems and a picture of the whole page.
func open(tab context.Context, seen *problemList, url string, width int64, scheme string) ([]string, []byte, error) {
	ctx, cancel := context.WithTimeout(tab, 30*time.Second)
	defer cancel()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
	media := emulation.SetEmulatedMediaParams{Features: features}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
		return nil, nil, err
	}
	var viewport []chromedp.EmulateViewportOption
	if width < 600 {
		viewport = append(viewport, chromedp.EmulateMobile)
	}
	err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 844, viewport...), chromedp.Navigate(url),
		chromedp.Sleep(200*time.Millisecond)) // scripts that run after loading
	if err != nil {
		return nil, nil, err
	}
	const excess = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
	overflow, err := chromedp.Run(ctx, chromedp.Evaluate[int](excess))
	if err != nil {
		return nil, nil, err
	}
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	problems := seen.take()
	if overflow > 0 {
		problems = append(problems, fmt.Sprintf("the page is %d pixels wider than the screen", overflow))
	}
	return problems, png, err
}

// A problemList holds the errors and warnings that pages wrote to the console.
type problemList struct {
	mu       sync.Mutex
	problems []string
}

// collect reads messages until the tab is closed. Failed requests are messages too.
func (l *problemList) collect(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
	harmless := []chromedp.ConsoleType{chromedp.ConsoleLog, chromedp.ConsoleDebug, chromedp.ConsoleInfo}
	for m, err := range messages {
		if err != nil || slices.Contains(harmless, m.Type) {
			continue
		}
		l.mu.Lock()
		l.problems = append(l.problems, fmt.Sprintf("%v (%s)", m, m.URL))
		l.mu.Unlock()
	}
}

// take returns the problems since the last call.
func (l *problemList) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.problems
	l.problems = nil
	return found
}
