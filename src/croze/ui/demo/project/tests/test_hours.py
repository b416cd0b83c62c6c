import unittest

from tidetable import Span, merge, parse_hours, total_minutes


class MergeTest(unittest.TestCase):
    def test_spans_that_touch_become_one(self):
        self.assertEqual(merge([Span(60, 120), Span(120, 180)]), [Span(60, 180)])

    def test_spans_apart_stay_apart_in_order(self):
        self.assertEqual(merge([Span(300, 400), Span(10, 20)]), [Span(10, 20), Span(300, 400)])

    def test_a_span_within_another_changes_nothing(self):
        self.assertEqual(merge([Span(60, 600), Span(100, 200)]), [Span(60, 600)])

    def test_minutes_are_counted_once(self):
        self.assertEqual(total_minutes([Span(0, 100), Span(50, 80)]), 100)


class ParseTest(unittest.TestCase):
    def test_a_line_of_hours(self):
        self.assertEqual(
            parse_hours("12:00-15:30, 06:10-09:45"), [Span(370, 585), Span(720, 930)]
        )

    def test_what_is_no_span_is_refused(self):
        with self.assertRaises(ValueError):
            parse_hours("noon-15:00")


if __name__ == "__main__":
    unittest.main()
