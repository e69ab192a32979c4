"""`make bench`: what a deal, a move and the referee cost on this machine."""

from bench import deal, referee

deal.main()
raise SystemExit(referee.run())
