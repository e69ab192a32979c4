"""Sign-in from challenge to session, on real stores."""

from tests.integration.auth.conftest import World


async def test_a_new_person_gets_an_account_and_a_session(world: World):
    device = world.device()
    answer = await device.sign_in(display_name="花子")
    assert answer.is_new_account
    assert answer.profile.display_name == "花子"
    assert (await device.profile()) == answer.profile
