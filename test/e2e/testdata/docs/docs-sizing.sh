### Try it on your claims
{ echo created; for day in 02 03 04 05 06; do for hour in 08 09 10 11 14; do echo "2026-03-${day}T$hour:12:00Z"; done; done; } > claims.csv
