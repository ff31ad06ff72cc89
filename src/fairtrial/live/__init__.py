"""A run that goes on, as its record and its feed show it, for the page and for the terminal. Changes nothing.

It knows records and analyses. It must not know who looks, nor take part in the run: `fairtrial.record.live` says what a
run tells.
"""
