### Write a bundle now
tidy
hotspare pool create dev --size 1 --running 1 --workers 0
hotspare claim create dev --name mine --wait
