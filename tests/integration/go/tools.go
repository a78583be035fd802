//go:build tools

// Package tools names the program, so that go.mod keeps what it needs.
package tools

import _ "github.com/prometheus/prometheus/cmd/prometheus"
