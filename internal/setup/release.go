package setup

import "context"

func (s *setup) release(ctx context.Context, m *manifest, args []string) error { return nil }
