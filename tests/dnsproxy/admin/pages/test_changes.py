from dnsproxy.admin.pages.changes import format_changes_page
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Origin
from dnsproxy.hostnames.table_changes import MOST_CHANGES, Answer, TableChange
from tests.kit.stepping import finish

WEB = Origin("Ingress", "web", "shop")


def change(
    hostname: str = "app.example.org", *, before: Answer | None = None, after: Answer | None = None
) -> TableChange:
    what = "added" if before is None else "removed" if after is None else "changed"
    return TableChange(1_700_000_000.0, hostname, Reach.NAME, what, WEB, before, after)  # type: ignore[arg-type]


def test_a_change_has_time_name_object_and_what_changed() -> None:
    page = finish(
        format_changes_page(
            [change(before=Answer(WEB, ("192.0.2.1",), "nginx"), after=Answer(WEB, ("192.0.2.2",), None))]
        )
    )
    for shown in (
        "app.example.org",
        '<time datetime="2023-11-14T22:13:20+00:00">2023-11-14 22:13:20</time>',
        "changed",
        "Ingress shop/web",
        "192.0.2.1 (nginx)",
        "192.0.2.2",
    ):
        assert shown in page


def test_without_changes_the_page_says_so() -> None:
    assert "No name was added, changed or removed since the start." in finish(format_changes_page([]))


def test_texts_of_others_stay_text() -> None:
    evil = "<script>alert(1)</script>"
    origin = Origin("Ingress", evil, "shop")
    page = finish(format_changes_page([TableChange(0.0, evil, Reach.NAME, "added", origin, None, None)]))
    assert "<script>" not in page


def test_all_that_are_kept_are_shown_in_many_steps() -> None:
    steps = format_changes_page([change(f"n{number}.example.org") for number in range(MOST_CHANGES)])
    pauses = 0
    try:
        while True:
            next(steps)
            pauses += 1
    except StopIteration as done:
        page = done.value
    assert pauses >= MOST_CHANGES // 50
    assert page.count("<time") == MOST_CHANGES
