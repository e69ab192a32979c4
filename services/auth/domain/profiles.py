"""What others see of an account."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True)
class Profile:
    """Is what others see of an account; `create_time` in unix seconds."""

    account_id: UUID
    display_name: str
    avatar: str
    create_time: float
