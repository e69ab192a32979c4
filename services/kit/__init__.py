"""What every service shares: the harness around a service, never a part of what it does.

Kit knows no service and no rule of the product (import contract 6 and tests/architecture keep it so), holds at most
15 files and 1,300 lines, and grows only when a third service needs the same code.
"""

__all__: list[str] = []
